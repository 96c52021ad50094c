// When to look again whether a device is done.
#ifndef CROUT_KERNELS_UTIL_POLL_PAUSE_H_
#define CROUT_KERNELS_UTIL_POLL_PAUSE_H_

#include <algorithm>
#include <chrono>

namespace crout {

// How long a thread that has looked for `waited`, not negative, sleeps before it looks again; zero:
// it does not. A sleeper wakes by a timer and the scheduler, some 50 microseconds late: as long as
// small jobs take, which are looked at without a pause. What takes longer is noticed late by a
// quarter of its time at most, that delay aside, and by 200 microseconds however long it takes.
constexpr std::chrono::nanoseconds PollPause(std::chrono::nanoseconds waited) {
  constexpr std::chrono::nanoseconds kAwake = std::chrono::microseconds(200);
  constexpr std::chrono::nanoseconds kLongest = std::chrono::microseconds(200);
  if (waited < kAwake) return std::chrono::nanoseconds(0);
  return std::min(waited / 4, kLongest);
}

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_POLL_PAUSE_H_
