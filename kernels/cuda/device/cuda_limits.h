// A GPU that has less than it has. No CUDA header, and C++17: kernels and programs include it.
#ifndef CROUT_KERNELS_CUDA_DEVICE_CUDA_LIMITS_H_
#define CROUT_KERNELS_CUDA_DEVICE_CUDA_LIMITS_H_

#include <cstddef>
#include <limits>

namespace crout::cuda {

// For tests: the GPU is taken for one that has no more than this, whatever it has.
struct CudaLimits {
  int multiprocessors = std::numeric_limits<int>::max();
  size_t shared_bytes = std::numeric_limits<size_t>::max();  // of a block of threads
  int cluster_blocks = std::numeric_limits<int>::max();      // 0: as GPUs before Hopper
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_CUDA_LIMITS_H_
