// SPDX-License-Identifier: Apache-2.0

// The resources of a GPU that kernels must fit in.
#ifndef CROUT_KERNELS_CUDA_DEVICE_DEVICE_LIMITS_H_
#define CROUT_KERNELS_CUDA_DEVICE_DEVICE_LIMITS_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "kernels/cuda/device/cuda_limits.h"

namespace crout::cuda {

// Queried from the driver once, when a device is created, and passed to everything that selects
// kernels, variants and sizes. There is no other source of these limits, so a test can lower them.
struct DeviceLimits {
  int multiprocessors = 0;
  size_t shared_bytes = 0;  // per block of threads, if the kernel opts in
  int cluster_blocks = 0;   // largest cluster size to try; 0 before Hopper
  // A kernel can start while the previous one ends (programmatic dependent launch).
  bool dependent_launch = false;

  // Returns the limits of the current device, bounded by `most`.
  static absl::StatusOr<DeviceLimits> ForCurrentDevice(const CudaLimits& most = {});

  // The dynamic shared memory available to a kernel with `static_bytes` of static shared memory.
  size_t DynamicBytes(size_t static_bytes) const;

  // The number of blocks of the largest cluster of `kernel` that fits on the current device: a
  // power of two from 2 to `most`, or 0 if none fits. Also allows the kernel clusters of that size.
  int LargestCluster(const void* kernel, int threads, int most) const;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_DEVICE_LIMITS_H_
