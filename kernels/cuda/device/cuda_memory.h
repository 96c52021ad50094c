// SPDX-License-Identifier: Apache-2.0

// Memory directly from the CUDA driver. Use it below a CachingResource: cudaMalloc and cudaFree are
// slow.
#ifndef CROUT_KERNELS_CUDA_DEVICE_CUDA_MEMORY_H_
#define CROUT_KERNELS_CUDA_DEVICE_CUDA_MEMORY_H_

#include "kernels/memory/caching_resource.h"

namespace crout::cuda {

// Device memory of one GPU. Thread-safe; any device may be current.
class CudaDeviceMemory final : public BlockSource {
 public:
  explicit CudaDeviceMemory(int ordinal) : ordinal_(ordinal) {}

  absl::StatusOr<void*> Acquire(size_t bytes) override;
  void Release(void* block, size_t bytes) override;

 private:
  const int ordinal_;
};

// Pinned host memory, which kernels can access at the same address.
class CudaPinnedMemory final : public BlockSource {
 public:
  explicit CudaPinnedMemory(int ordinal) : ordinal_(ordinal) {}

  absl::StatusOr<void*> Acquire(size_t bytes) override;
  void Release(void* block, size_t bytes) override;

 private:
  const int ordinal_;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_CUDA_MEMORY_H_
