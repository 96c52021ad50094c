// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/device/cuda_memory.h"

#include <cuda_runtime_api.h>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/device/cuda_status.h"

namespace crout::cuda {
namespace {

// Adds the number of bytes to the message of a failed allocation, as BlockSource requires.
absl::Status AllocationStatus(cudaError_t code, absl::string_view call, absl::string_view kind,
                              size_t bytes) {
  absl::Status status = CudaStatus(code, call);
  if (!absl::IsResourceExhausted(status)) return status;
  return absl::ResourceExhaustedError(
      absl::StrCat("allocating ", bytes, " bytes of ", kind, ": ", status.message()));
}

}  // namespace

absl::StatusOr<void*> CudaDeviceMemory::Acquire(size_t bytes) {
  CROUT_RETURN_IF_CUDA_ERROR(cudaSetDevice(ordinal_));
  void* data = nullptr;
  const cudaError_t code = cudaMalloc(&data, bytes);
  if (code != cudaSuccess) return AllocationStatus(code, "cudaMalloc", "device memory", bytes);
  return data;
}

void CudaDeviceMemory::Release(void* block, size_t) {
  // The next call on the device reports any failure again.
  if (cudaSetDevice(ordinal_) == cudaSuccess) (void)cudaFree(block);
}

absl::StatusOr<void*> CudaPinnedMemory::Acquire(size_t bytes) {
  CROUT_RETURN_IF_CUDA_ERROR(cudaSetDevice(ordinal_));
  void* data = nullptr;
  const cudaError_t code = cudaHostAlloc(&data, bytes, cudaHostAllocDefault);
  if (code != cudaSuccess) return AllocationStatus(code, "cudaHostAlloc", "pinned memory", bytes);
  return data;
}

void CudaPinnedMemory::Release(void* block, size_t) {
  if (cudaSetDevice(ordinal_) == cudaSuccess) (void)cudaFreeHost(block);
}

}  // namespace crout::cuda
