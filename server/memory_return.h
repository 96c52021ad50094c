// SPDX-License-Identifier: Apache-2.0

// Returns cached memory to the system when the daemon is idle.
#ifndef CROUT_SERVER_MEMORY_RETURN_H_
#define CROUT_SERVER_MEMORY_RETURN_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/time/time.h"

namespace crout {

// Counters that change when memory may have been used.
struct Activity {
  uint64_t calls = 0;    // started since the process began
  size_t in_flight = 0;  // calls in progress
  int64_t jobs = 0;      // queued or running; some outlive their calls
  // Reserved bytes of host memory. They also change without a call, when a lease ends or a factor
  // moves.
  size_t reserved = 0;

  friend bool operator==(const Activity&, const Activity&) = default;
};

// Cached memory makes the next job faster, because returned pages must be faulted in again. The
// memory is therefore returned once after an idle period, not after each job. Not thread-safe.
class MemoryReturn {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // `after`: required idle time; infinite: never return memory. `return_memory` may take long;
  // Observe() waits for it.
  MemoryReturn(absl::Duration after, std::function<void()> return_memory)
      : after_(after), return_memory_(std::move(return_memory)) {}

  // Call about once a second with the activity at `now`. Calls `return_memory` if nothing is
  // running, the idle time has passed, and there was activity since the last call of
  // `return_memory`.
  void Observe(const Activity& activity, TimePoint now);

 private:
  const absl::Duration after_;
  const std::function<void()> return_memory_;
  Activity last_;
  TimePoint since_;  // time at which the activity became equal to last_
  bool done_ = true;
};

}  // namespace crout

#endif  // CROUT_SERVER_MEMORY_RETURN_H_
