// SPDX-License-Identifier: Apache-2.0

// Pauses between polls of a device.
#ifndef CROUT_KERNELS_UTIL_POLL_PAUSE_H_
#define CROUT_KERNELS_UTIL_POLL_PAUSE_H_

#include <algorithm>
#include <chrono>

namespace crout {

// Returns how long a thread that has polled for `waited` (>= 0) should sleep before the next poll;
// zero means no sleep.
//
// A sleeping thread wakes about 50 microseconds late because of timer and scheduler. That is the
// duration of a small job, so short waits poll without sleeping. For longer waits, completion is
// noticed late by at most a quarter of the wait and at most 200 microseconds, plus this wake-up
// delay.
constexpr std::chrono::nanoseconds PollPause(std::chrono::nanoseconds waited) {
  constexpr std::chrono::nanoseconds kPollTime = std::chrono::microseconds(200);
  constexpr std::chrono::nanoseconds kMaxPause = std::chrono::microseconds(200);
  if (waited < kPollTime) return std::chrono::nanoseconds(0);
  return std::min(waited / 4, kMaxPause);
}

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_POLL_PAUSE_H_
