// The clocks that leases, timeouts and deadlines go by: a test can move them.
#ifndef CROUT_KERNELS_UTIL_CLOCK_H_
#define CROUT_KERNELS_UTIL_CLOCK_H_

#include <atomic>
#include <chrono>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace crout {

// How far both clocks were moved; 0 in every program but tests. Only grows.
inline std::atomic<std::chrono::nanoseconds> clock_offset = std::chrono::nanoseconds(0);

// absl::Now(), for times that are told to somebody.
inline absl::Time WallNow() { return absl::Now() + absl::FromChrono(clock_offset.load()); }

// steady_clock::now(), for what is waited for. Durations that are measured and reported are not
// taken from it.
inline std::chrono::steady_clock::time_point SteadyNow() {
  return std::chrono::steady_clock::now() + clock_offset.load();
}

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_CLOCK_H_
