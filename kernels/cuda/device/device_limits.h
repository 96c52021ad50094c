// What kernels must fit into on a GPU.
#ifndef CROUT_KERNELS_CUDA_DEVICE_DEVICE_LIMITS_H_
#define CROUT_KERNELS_CUDA_DEVICE_DEVICE_LIMITS_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "kernels/cuda/device/cuda_limits.h"

namespace crout::cuda {

// Asked of the driver once, when a device is made, and passed to whatever chooses between kernels,
// their variants and sizes: nothing else says what a GPU has, so that a test can say it has less.
struct DeviceLimits {
  int multiprocessors = 0;
  size_t shared_bytes = 0;  // of one block of threads, where a kernel asks for it
  int cluster_blocks = 0;   // the most that a cluster is tried with; 0 before Hopper
  // A kernel can start while the one before it ends (programmatic dependent launch).
  bool dependent_launch = false;

  // Of the current device, and no more than `most`.
  static absl::StatusOr<DeviceLimits> OfCurrent(const CudaLimits& most = {});

  // What a kernel with that much static shared memory can have beside it.
  size_t DynamicBytes(size_t static_bytes) const;

  // Blocks of the largest cluster of `kernel`, a power of two of 2 to `most`, that the current
  // device has place for; 0 where it has for none. Lets the kernel have clusters of that size.
  int LargestCluster(const void* kernel, int threads, int most) const;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_DEVICE_LIMITS_H_
