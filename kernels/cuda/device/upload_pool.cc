// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/device/upload_pool.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/device/cuda_status.h"
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

std::span<std::byte> CudaUploader::Reserve(absl::AnyInvocable<void()> on_ready) {
  const size_t left = destination_.size() - committed_;
  if (left == 0) return {};
  if (block_.empty()) block_ = staging_.Take(std::move(on_ready));
  const std::span<std::byte> rest = block_.subspan(filled_);
  return rest.first(std::min(rest.size(), left));
}

absl::Status CudaUploader::Commit(size_t bytes) {
  const size_t left = destination_.size() - committed_;
  if (bytes == 0) return absl::OkStatus();
  if (bytes > std::min(block_.size() - filled_, left)) {
    return absl::InternalError(absl::StrCat(bytes, " bytes were committed; only ",
                                            std::min(block_.size() - filled_, left),
                                            " were reserved"));
  }
  filled_ += bytes;
  committed_ += bytes;
  if (filled_ < block_.size() && committed_ < destination_.size()) return absl::OkStatus();
  CROUT_RETURN_IF_ERROR(pool_.core_.MakeCurrent());
  return pool_.core_.Observe(EnqueueCopy());
}

absl::StatusOr<bool> CudaUploader::Send(std::span<const std::byte> source) {
  const size_t left = destination_.size() - committed_;
  if (source.size() > left) {
    return absl::InternalError(
        absl::StrCat(source.size(), " bytes were sent; only ", left, " are missing"));
  }
  if (source.empty()) return true;
  CROUT_RETURN_IF_ERROR(pool_.core_.MakeCurrent());
  if (filled_ > 0) CROUT_RETURN_IF_ERROR(pool_.core_.Observe(EnqueueCopy()));
  CROUT_RETURN_IF_ERROR(pool_.core_.Observe(EnqueueDirectCopy(source)));
  committed_ += source.size();
  return true;
}

absl::Status CudaUploader::EnqueueDirectCopy(std::span<const std::byte> source) {
  cudaStream_t stream = pool_.copies_.get();
  CROUT_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(destination_.data() + committed_, source.data(),
                                             source.size(), cudaMemcpyDefault, stream));
  CROUT_RETURN_IF_CUDA_ERROR(cudaEventRecord(copied_.get(), stream));
  return absl::OkStatus();
}

absl::Status CudaUploader::Pause() {
  // Keep the block unless blocks are scarce: small copies have a cost too.
  if (block_.empty() || !pool_.staging_->scarce()) return absl::OkStatus();
  if (filled_ == 0) {
    staging_.Return();
    block_ = {};
    return absl::OkStatus();
  }
  CROUT_RETURN_IF_ERROR(pool_.core_.MakeCurrent());
  return pool_.core_.Observe(EnqueueCopy());
}

absl::Status CudaUploader::EnqueueCopy() {
  cudaStream_t stream = pool_.copies_.get();
  std::byte* to = destination_.data() + committed_ - filled_;
  CROUT_RETURN_IF_CUDA_ERROR(
      cudaMemcpyAsync(to, block_.data(), filled_, cudaMemcpyHostToDevice, stream));
  CROUT_RETURN_IF_CUDA_ERROR(cudaEventRecord(pool_.copied_[staging_.block()].get(), stream));
  CROUT_RETURN_IF_CUDA_ERROR(cudaEventRecord(copied_.get(), stream));
  staging_.Send();
  block_ = {};
  filled_ = 0;
  return absl::OkStatus();
}

absl::Status CudaUploader::Join(ExecutionContext&) {
  if (committed_ != destination_.size()) {
    return absl::FailedPreconditionError("the upload is not complete");
  }
  CROUT_RETURN_IF_ERROR(pool_.core_.MakeCurrent());
  // Polls, as a wait for a stream does. Threads that wait for the event sleep, and waking one can
  // take as long as the copy.
  cudaError_t state = cudaSuccess;
  do {
    state = cudaEventQuery(copied_.get());
  } while (state == cudaErrorNotReady);
  return pool_.core_.Observe(CudaStatus(state, "cudaEventQuery"));
}

CudaUploader::~CudaUploader() {
  (void)cudaSetDevice(pool_.core_.ordinal());
  // The destination may be freed after this.
  pool_.core_.Observe(CudaStatus(cudaEventSynchronize(copied_.get()), "cudaEventSynchronize"))
      .IgnoreError();
}

}  // namespace crout::cuda
