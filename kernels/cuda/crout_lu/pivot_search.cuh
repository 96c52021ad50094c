// SPDX-License-Identifier: Apache-2.0

// Finds the largest of a warp's pivot candidates.
#ifndef CROUT_KERNELS_CUDA_CROUT_LU_PIVOT_SEARCH_CUH_
#define CROUT_KERNELS_CUDA_CROUT_LU_PIVOT_SEARCH_CUH_

#include <cstdint>

#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/ops/reduction.cuh"

namespace crout::cuda {

// The bits of |x|, or of Abs1(x) for a complex x. Keys compare like the numbers.
__device__ inline uint64_t KeyOf(double x) { return AbsBits(x); }
__device__ inline uint64_t KeyOf(float x) {
  return static_cast<uint64_t>(__float_as_uint(x) & 0x7fffffffU) << 32;
}
template <class Part>
__device__ uint64_t KeyOf(const Complex<Part>& x) {
  return KeyOf(Abs1(x));
}

// Among the lanes with the largest high word, returns the first one with the largest low word.
// Rarely needed, so not inlined.
static __device__ __noinline__ unsigned BreakTie(uint64_t key, unsigned best_high) {
  const bool tied = static_cast<unsigned>(key >> 32) == best_high;
  const unsigned best_low = __reduce_max_sync(kAllLanes, tied ? static_cast<unsigned>(key) : 0);
  const unsigned lanes = __ballot_sync(kAllLanes, tied && static_cast<unsigned>(key) == best_low);
  return lanes & -lanes;
}

// Returns the lane with the largest key as a mask; the first one among equal keys.
__device__ inline unsigned LargestKey(uint64_t key) {
  const auto high = static_cast<unsigned>(key >> 32);
  const unsigned best = __reduce_max_sync(kAllLanes, high);
  const unsigned lanes = __ballot_sync(kAllLanes, high == best);
  return (lanes & (lanes - 1)) != 0 ? BreakTie(key, best) : lanes;
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_LU_PIVOT_SEARCH_CUH_
