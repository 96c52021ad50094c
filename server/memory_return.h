// SPDX-License-Identifier: Apache-2.0

// When memory that is kept for the next job goes back to the system: once the daemon is idle.
#ifndef CROUT_SERVER_MEMORY_RETURN_H_
#define CROUT_SERVER_MEMORY_RETURN_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/time/time.h"

namespace crout {

// What tells that memory may have been used since the last look.
struct Activity {
  uint64_t calls = 0;    // that ever began
  size_t in_flight = 0;  // of them
  int64_t jobs = 0;      // queued or running; some outlive their calls
  size_t reserved = 0;   // bytes of host memory: leases end, and factors move, without a call

  friend bool operator==(const Activity&, const Activity&) = default;
};

// Kept memory makes the next job fast, so it is given back not after each, but after a while
// without any, and once: what is given back has to be faulted in anew. Used by one thread.
class MemoryReturn {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // `after`: how long nothing must have happened; infinite: never. `give_back` may take long.
  MemoryReturn(absl::Duration after, std::function<void()> give_back)
      : after_(after), give_back_(std::move(give_back)) {}

  // To be called every second or so with what there is at `now`. Calls give_back when nothing runs,
  // nothing has happened for long enough, and something has since the last time it was called.
  void Observe(const Activity& activity, TimePoint now);

 private:
  const absl::Duration after_;
  const std::function<void()> give_back_;
  Activity last_;
  TimePoint since_;  // when the activity became last_
  bool done_ = true;
};

}  // namespace crout

#endif  // CROUT_SERVER_MEMORY_RETURN_H_
