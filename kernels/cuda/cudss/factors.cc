// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/cudss/factors.h"

#include <cuda_runtime_api.h>

#include <utility>

#include "kernels/util/status_macros.h"

namespace crout::cuda {

// The handle must be destroyed on the device that created it, even if that device is lost.
CudssFactors::~CudssFactors() { (void)cudaSetDevice(core_.ordinal()); }

CudssFactor* CudssFactors::At(const std::byte* block) {
  MutexLock lock(&mutex_);
  const auto found = factors_.find(block);
  return found == factors_.end() ? nullptr : found->second.get();
}

absl::StatusOr<void*> CudssFactors::DoAllocate(size_t bytes) {
  auto factor = std::make_unique<CudssFactor>();
  CROUT_ASSIGN_OR_RETURN(factor->block, memory_.Allocate(bytes));
  void* const data = factor->block.data();
  MutexLock lock(&mutex_);
  factors_.emplace(data, std::move(factor));
  return data;
}

void CudssFactors::DoDeallocate(void* data, size_t) {
  std::unique_ptr<CudssFactor> factor;
  {
    MutexLock lock(&mutex_);
    factor = std::move(factors_.extract(data).mapped());
  }
  // Also for a lost device, so that the library's host memory is freed.
  (void)cudaSetDevice(core_.ordinal());
}

}  // namespace crout::cuda
