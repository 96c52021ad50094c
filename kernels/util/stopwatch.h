// SPDX-License-Identifier: Apache-2.0

// Measures phases of a job.
#ifndef CROUT_KERNELS_UTIL_STOPWATCH_H_
#define CROUT_KERNELS_UTIL_STOPWATCH_H_

#include <chrono>

namespace crout {

// Returns the seconds since construction or the last Lap().
class Stopwatch {
 public:
  double Lap() {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double> elapsed = now - start_;
    start_ = now;
    return elapsed.count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_STOPWATCH_H_
