// SPDX-License-Identifier: Apache-2.0

// Reductions within a block, and the detection of a grid's last block. The order is fixed: the same
// input gives the same bits.
#ifndef CROUT_KERNELS_CUDA_OPS_REDUCTION_CUH_
#define CROUT_KERNELS_CUDA_OPS_REDUCTION_CUH_

#include <cstdint>

#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/ops/reduction_scratch.h"

namespace crout::cuda {

inline constexpr int kBlockThreads = 256;
inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffU;

// The bits of |x|, which compare like the numbers; NaN is above Inf.
__device__ inline unsigned long long AbsBits(double x) {
  return static_cast<unsigned long long>(__double_as_longlong(x)) & 0x7fffffffffffffffULL;
}

__device__ inline double FromBits(unsigned long long bits) {
  return __longlong_as_double(static_cast<long long>(bits));
}

// max(a, b), but NaN if either is NaN; fmax ignores NaN.
__device__ inline double MaxKeepingNan(double a, double b) { return (b > a || b != b) ? b : a; }

struct Sum {
  template <class V>
  __device__ V operator()(V a, V b) const {
    return a + b;
  }
};

struct Min {  // ignores NaN
  __device__ double operator()(double a, double b) const { return fmin(a, b); }
};

struct Max {
  __device__ double operator()(double a, double b) const { return MaxKeepingNan(a, b); }
};

// The value of the lane `step` lanes above.
template <class V>
__device__ V ShuffleDown(V value, int step) {
  if constexpr (kIsComplex<V>) {
    return {ShuffleDown(value.re, step), ShuffleDown(value.im, step)};
  } else {
    return __shfl_down_sync(kAllLanes, value, step);
  }
}

// Combines one value per lane; the result is valid in lane 0. Called by the whole warp.
template <class V, class Combine>
__device__ V WarpReduce(V value, Combine combine) {
  for (int step = kWarp / 2; step > 0; step /= 2) value = combine(value, ShuffleDown(value, step));
  return value;
}

// Combines one value of each of kBlockThreads threads; the result is valid in thread 0. Called by
// every thread of the block.
template <class V, class Combine>
__device__ V BlockReduce(V value, Combine combine) {
  __shared__ V warps[kBlockThreads / kWarp];
  value = WarpReduce(value, combine);
  __syncthreads();  // `warps` may still be read from the previous call
  if (threadIdx.x % kWarp == 0) warps[threadIdx.x / kWarp] = value;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < kBlockThreads / kWarp; ++w) value = combine(value, warps[w]);
  }
  return value;
}

// Returns true in every thread of the last block of the grid that calls this function. That block
// sees everything that all blocks did to `scratch` before, and must publish and reset it. Called by
// every thread.
__device__ inline bool IsLastBlock(ReductionScratch* scratch) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(&scratch->blocks_done, 1U) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  return last;
}

// Reads a word that atomics updated, past a stale line of the L1 cache.
__device__ inline unsigned long long Load(const unsigned long long& word) { return __ldcg(&word); }

__device__ inline void Reset(ReductionScratch* scratch) {
  for (unsigned long long& word : scratch->least) word = ReductionScratch::kNone;
  for (unsigned long long& word : scratch->greatest) word = 0;
  scratch->blocks_done = 0;
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_REDUCTION_CUH_
