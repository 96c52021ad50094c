#include "kernels/cuda/cuda_uploader.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/cuda_context.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/util/status_macros.h"

namespace crout {

std::span<std::byte> CudaUploader::Reserve(absl::AnyInvocable<void()> on_ready) {
  const size_t left = destination_.size() - committed_;
  if (left == 0) return {};
  if (current_ == nullptr) {
    MutexLock lock(&pool_.mutex_);
    current_ = granted_ != nullptr ? std::exchange(granted_, nullptr) : pool_.TakeFree(*this);
    if (current_ == nullptr) {
      pool_.waiters_.push_back({this, std::move(on_ready)});
      return {};
    }
  }
  return {current_->data + filled_, std::min(pool_.block_bytes_ - filled_, left)};
}

absl::Status CudaUploader::Commit(size_t bytes) {
  const size_t left = destination_.size() - committed_;
  if (bytes == 0) return absl::OkStatus();
  if (current_ == nullptr || bytes > std::min(pool_.block_bytes_ - filled_, left)) {
    return absl::InternalError("more bytes committed than were reserved");
  }
  filled_ += bytes;
  committed_ += bytes;
  if (filled_ < pool_.block_bytes_ && committed_ < destination_.size()) return absl::OkStatus();
  CROUT_RETURN_IF_ERROR(pool_.core_.MakeCurrent());
  return pool_.core_.Observe(EnqueueCopy());
}

absl::Status CudaUploader::Pause() {
  if (current_ == nullptr) return absl::OkStatus();
  {
    // Half of the blocks are there for whoever comes first: sending small pieces has its cost too.
    MutexLock lock(&pool_.mutex_);
    if (pool_.free_.size() >= pool_.blocks_.size() / 2) return absl::OkStatus();
    if (filled_ == 0) {
      current_->owner = nullptr;
      pool_.free_.push_back(std::exchange(current_, nullptr));
      pool_.wake_.Signal();
      return absl::OkStatus();
    }
  }
  CROUT_RETURN_IF_ERROR(pool_.core_.MakeCurrent());
  return pool_.core_.Observe(EnqueueCopy());
}

absl::Status CudaUploader::EnqueueCopy() {
  cudaStream_t stream = pool_.copies_.get();
  std::byte* to = destination_.data() + committed_ - filled_;
  CROUT_RETURN_IF_CUDA_ERROR(
      cudaMemcpyAsync(to, current_->data, filled_, cudaMemcpyHostToDevice, stream));
  CROUT_RETURN_IF_CUDA_ERROR(cudaEventRecord(current_->copied.get(), stream));
  CROUT_RETURN_IF_CUDA_ERROR(cudaEventRecord(copied_.get(), stream));
  {
    MutexLock lock(&pool_.mutex_);
    pool_.in_flight_.push_back(std::exchange(current_, nullptr));
    ++in_flight_;
  }
  filled_ = 0;
  pool_.wake_.Signal();
  return absl::OkStatus();
}

absl::Status CudaUploader::Join(ExecutionContext& context) {
  if (committed_ != destination_.size()) {
    return absl::FailedPreconditionError("the upload is not complete");
  }
  CROUT_RETURN_IF_ERROR(pool_.core_.MakeCurrent());
  return pool_.core_.Observe(
      CudaStatus(cudaStreamWaitEvent(CudaContext::From(context).stream(), copied_.get()),
                 "cudaStreamWaitEvent"));
}

CudaUploader::~CudaUploader() {
  (void)cudaSetDevice(pool_.core_.ordinal());
  // The destination may be freed after this.
  pool_.core_.Observe(CudaStatus(cudaEventSynchronize(copied_.get()), "cudaEventSynchronize"))
      .IgnoreError();
  GiveUpBlocks();
}

void CudaUploader::GiveUpBlocks() {
  MutexLock lock(&pool_.mutex_);
  std::erase_if(pool_.waiters_, [this](const auto& waiter) { return waiter.uploader == this; });
  // An on_ready that runs now may still use what the caller is about to free; unless it is the one
  // that brought us here.
  while (pool_.notifying_ == this && std::this_thread::get_id() != pool_.recycler_.get_id()) {
    pool_.notified_.Wait(&pool_.mutex_);
  }
  for (UploadPool::Block* block : pool_.in_flight_) {
    if (block->owner == this) block->owner = nullptr;
  }
  for (UploadPool::Block* block : {current_, granted_}) {
    if (block == nullptr) continue;
    block->owner = nullptr;
    pool_.free_.push_back(block);
  }
  pool_.wake_.Signal();
}

}  // namespace crout
