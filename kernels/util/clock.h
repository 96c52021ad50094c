// SPDX-License-Identifier: Apache-2.0

// Clocks for leases, timeouts and deadlines. Tests can advance them.
#ifndef CROUT_KERNELS_UTIL_CLOCK_H_
#define CROUT_KERNELS_UTIL_CLOCK_H_

#include <atomic>
#include <chrono>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace crout {

// Offset of both clocks; 0 outside tests. Only grows.
inline std::atomic<std::chrono::nanoseconds> clock_offset = std::chrono::nanoseconds(0);

// absl::Now() plus the offset, for times that are reported.
inline absl::Time WallNow() { return absl::Now() + absl::FromChrono(clock_offset.load()); }

// steady_clock::now() plus the offset, for waiting. Not for measured durations.
inline std::chrono::steady_clock::time_point SteadyNow() {
  return std::chrono::steady_clock::now() + clock_offset.load();
}

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_CLOCK_H_
