// SPDX-License-Identifier: Apache-2.0

// Pivot search by one block of threads.
#ifndef CROUT_KERNELS_CUDA_OPS_LARGEST_CANDIDATE_CUH_
#define CROUT_KERNELS_CUDA_OPS_LARGEST_CANDIDATE_CUH_

#include <cuda_runtime_api.h>

#include "kernels/cuda/device/scalar.cuh"

namespace crout::cuda {

// In shared memory: the largest absolute value (Abs1) that each thread has read, and its row.
template <int kThreads>
struct Candidates {
  double value[kThreads];
  int64_t row[kThreads];
};

// Stores the largest absolute value of column[from, to) and its first row in slot 0, or 0 and `to`
// if all elements are zero. NaN is skipped. Called by all threads of the block; slot 0 is visible
// to all of them afterwards.
template <class T, int kThreads>
__device__ void FindLargest(const T* column, int64_t from, int64_t to,
                            Candidates<kThreads>& found) {
  const int thread = threadIdx.x;
  double largest = 0;
  int64_t row = to;
  for (int64_t i = from + thread; i < to; i += kThreads) {
    const double value = double{Abs1(LoadFresh(&column[i]))};
    if (value > largest) {
      largest = value;
      row = i;
    }
  }
  found.value[thread] = largest;
  found.row[thread] = row;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread >= half) continue;
    const double value = found.value[thread + half];
    const int64_t other = found.row[thread + half];
    if (value > found.value[thread] ||
        (value == found.value[thread] && other < found.row[thread])) {
      found.value[thread] = value;
      found.row[thread] = other;
    }
  }
  __syncthreads();
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_LARGEST_CANDIDATE_CUH_
