// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/device/upload_pool.h"

#include <utility>

#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/device/cuda_uploader.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {

absl::StatusOr<std::unique_ptr<UploadPool>> UploadPool::Create(DeviceCore& core,
                                                               MemoryResource& pinned,
                                                               const Options& options) {
  CROUT_RETURN_IF_ERROR(core.MakeCurrent());
  auto pool = std::unique_ptr<UploadPool>(new UploadPool(core));
  CROUT_RETURN_IF_ERROR(pool->Initialize(pinned, options));
  return pool;
}

absl::Status UploadPool::Initialize(MemoryResource& pinned, const Options& options) {
  const StagingPoolOptions staging = {options.upload_block_bytes, options.upload_blocks,
                                      options.blocks_per_upload};
  CROUT_ASSIGN_OR_RETURN(Buffer memory, pinned.Allocate(staging.block_bytes * staging.blocks));
  CROUT_ASSIGN_OR_RETURN(copies_, MakeStream());
  copied_.resize(staging.blocks);
  for (Event& copied : copied_) {
    CROUT_ASSIGN_OR_RETURN(copied, MakeEvent());
  }
  staging_.emplace(std::move(memory), staging, [this](int block) { AwaitCopy(block); });
  return absl::OkStatus();
}

UploadPool::~UploadPool() {
  staging_.reset();
  (void)cudaSetDevice(core_.ordinal());
}

void UploadPool::AwaitCopy(int block) {
  (void)cudaSetDevice(core_.ordinal());
  // The upload's own next call reports any failure again.
  core_.Observe(CudaStatus(cudaEventSynchronize(copied_[block].get()), "cudaEventSynchronize"))
      .IgnoreError();
}

absl::StatusOr<std::unique_ptr<Uploader>> UploadPool::Start(std::span<std::byte> destination) {
  CROUT_RETURN_IF_ERROR(core_.MakeCurrent());
  CROUT_ASSIGN_OR_RETURN(Event copied, MakeEvent());
  return std::make_unique<CudaUploader>(*this, destination, std::move(copied));
}

}  // namespace crout::cuda
