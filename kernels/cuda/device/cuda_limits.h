// SPDX-License-Identifier: Apache-2.0

// Artificial limits of a GPU, for tests. Includes no CUDA header and is C++17, so that kernels and
// programs can include it.
#ifndef CROUT_KERNELS_CUDA_DEVICE_CUDA_LIMITS_H_
#define CROUT_KERNELS_CUDA_DEVICE_CUDA_LIMITS_H_

#include <cstddef>
#include <limits>

namespace crout::cuda {

// The GPU is treated as if it had at most these resources.
struct CudaLimits {
  int multiprocessors = std::numeric_limits<int>::max();
  size_t shared_bytes = std::numeric_limits<size_t>::max();  // per block of threads
  int cluster_blocks = std::numeric_limits<int>::max();  // 0: no clusters, like GPUs before Hopper
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_CUDA_LIMITS_H_
