// SPDX-License-Identifier: Apache-2.0

// Emulates the device's reductions that panels and fronts use.
#ifndef CROUT_TESTS_EMULATION_INCLUDE_KERNELS_CUDA_OPS_REDUCTION_CUH_
#define CROUT_TESTS_EMULATION_INCLUDE_KERNELS_CUDA_OPS_REDUCTION_CUH_

#include <bit>
#include <cmath>
#include <cstdint>

namespace crout::cuda {

inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffU;

inline unsigned long long AbsBits(double x) {
  return std::bit_cast<unsigned long long>(std::fabs(x));
}

inline double MaxKeepingNan(double a, double b) { return (b > a || b != b) ? b : a; }

struct Sum {
  template <class V>
  V operator()(V a, V b) const {
    return a + b;
  }
};

template <class T>
T ShuffleXor(T x, int lanes);  // defined in scalar.cuh

// Combines the values of all lanes and returns the result in every lane.
template <class V, class Combine>
V WarpReduce(V value, Combine combine) {
  for (int step = kWarp / 2; step > 0; step /= 2) {
    value = combine(value, ShuffleXor(value, step));
  }
  return value;
}

}  // namespace crout::cuda

#endif  // CROUT_TESTS_EMULATION_INCLUDE_KERNELS_CUDA_OPS_REDUCTION_CUH_
