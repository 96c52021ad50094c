// Asks whether a job is to stop from inside a long loop.
#ifndef CROUT_KERNELS_STOP_COUNTER_H_
#define CROUT_KERNELS_STOP_COUNTER_H_

#include <cstdint>

#include "kernels/stop_requested.h"

namespace crout {

// Calls `stop` once every kStepsBetweenStops steps, so that a loop over entries may count each of
// them. For one thread.
class StopCounter {
 public:
  // About 1 ms where memory is read in order; 30 ms where each step misses every cache (100 ns).
  static constexpr int64_t kStepsBetweenStops = 1 << 18;

  explicit StopCounter(StopRequested stop) : stop_(stop) {}

  // Counts steps where the loop cannot end: the next Stops() may ask for them.
  void Count(int64_t steps = 1) { left_ -= steps; }

  // Counts as well. Returns true from the first time on that `stop` did.
  bool Stops(int64_t steps = 1) {
    Count(steps);
    if (left_ > 0) return false;
    if (!stopped_) stopped_ = stop_();
    left_ = stopped_ ? 0 : kStepsBetweenStops;
    return stopped_;
  }

  // CANCELLED once Stops() has returned true.
  absl::Status status() const {
    return stopped_ ? absl::CancelledError("stopped between phases") : absl::OkStatus();
  }

 private:
  const StopRequested stop_;
  int64_t left_ = kStepsBetweenStops;
  bool stopped_ = false;
};

}  // namespace crout

#endif  // CROUT_KERNELS_STOP_COUNTER_H_
