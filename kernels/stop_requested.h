// SPDX-License-Identifier: Apache-2.0

// Cancellation of a running job.
#ifndef CROUT_KERNELS_STOP_REQUESTED_H_
#define CROUT_KERNELS_STOP_REQUESTED_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace crout {

// Polled between phases, and between the panels or sweeps of stoppable methods. If it returns true,
// the job ends with CANCELLED, which the server replaces by the actual reason. Must be cheap and
// thread-safe.
using StopRequested = absl::FunctionRef<bool()>;

inline absl::Status CheckNotStopped(StopRequested stop) {
  return stop() ? absl::CancelledError("the job was stopped") : absl::OkStatus();
}

// Calls `stop` once every kStepsBetweenStops steps, so that a loop can count every entry cheaply.
// For one thread.
class StopCounter {
 public:
  // Polls are about 1 ms apart where memory is read in order, and 30 ms where each step misses
  // every cache (100 ns).
  static constexpr int64_t kStepsBetweenStops = 1 << 18;

  explicit StopCounter(StopRequested stop) : stop_(stop) {}

  // Counts steps without polling, for places where the loop cannot end. The next Stops() may poll.
  void Count(int64_t steps = 1) { left_ -= steps; }

  // Counts steps and polls when due. Returns true once `stop` has returned true.
  bool Stops(int64_t steps = 1) {
    Count(steps);
    if (left_ > 0) return false;
    if (!stopped_) stopped_ = stop_();
    left_ = stopped_ ? 0 : kStepsBetweenStops;
    return stopped_;
  }

  // Returns CANCELLED once Stops() has returned true.
  absl::Status status() const {
    return stopped_ ? absl::CancelledError("the job was stopped") : absl::OkStatus();
  }

 private:
  const StopRequested stop_;
  int64_t left_ = kStepsBetweenStops;
  bool stopped_ = false;
};

}  // namespace crout

#endif  // CROUT_KERNELS_STOP_REQUESTED_H_
