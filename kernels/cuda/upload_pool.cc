#include "kernels/cuda/upload_pool.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/cuda_uploader.h"
#include "kernels/util/status_macros.h"

namespace crout {

absl::StatusOr<std::unique_ptr<UploadPool>> UploadPool::Create(CudaDeviceCore& core,
                                                               MemoryResource& pinned,
                                                               const CudaOptions& options) {
  CROUT_RETURN_IF_ERROR(core.MakeCurrent());
  auto pool = std::unique_ptr<UploadPool>(new UploadPool(core, options));
  CROUT_RETURN_IF_ERROR(pool->Initialize(pinned, options.upload_blocks));
  return pool;
}

absl::Status UploadPool::Initialize(MemoryResource& pinned, int count) {
  CROUT_ASSIGN_OR_RETURN(memory_, pinned.Allocate(block_bytes_ * count));
  CROUT_ASSIGN_OR_RETURN(copies_, MakeCudaStream());
  blocks_.resize(count);
  for (int i = 0; i < count; ++i) {
    blocks_[i].data = memory_.data() + i * block_bytes_;
    CROUT_ASSIGN_OR_RETURN(blocks_[i].copied, MakeCudaEvent());
  }
  {
    MutexLock lock(&mutex_);
    for (Block& block : blocks_) free_.push_back(&block);
  }
  recycler_ = std::thread([this] { Recycle(); });
  return absl::OkStatus();
}

UploadPool::~UploadPool() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  wake_.SignalAll();
  if (recycler_.joinable()) recycler_.join();
  (void)cudaSetDevice(core_.ordinal());
}

absl::StatusOr<std::unique_ptr<Uploader>> UploadPool::Start(std::span<std::byte> destination) {
  CROUT_RETURN_IF_ERROR(core_.MakeCurrent());
  CROUT_ASSIGN_OR_RETURN(CudaEvent copied, MakeCudaEvent());
  return std::make_unique<CudaUploader>(*this, destination, std::move(copied));
}

UploadPool::Block* UploadPool::TakeFree(CudaUploader& uploader) {
  uploader.pool_.mutex_.AssertHeld();  // ours, which the analysis cannot know
  if (free_.empty() || uploader.in_flight_ >= blocks_per_upload_) return nullptr;
  Block* block = free_.back();
  free_.pop_back();
  block->owner = &uploader;
  return block;
}

bool UploadPool::TakeReadyWaiter(Waiter& out) {
  for (auto waiter = waiters_.begin(); waiter != waiters_.end(); ++waiter) {
    Block* block = TakeFree(*waiter->uploader);
    if (block == nullptr) continue;
    waiter->uploader->pool_.mutex_.AssertHeld();
    waiter->uploader->granted_ = block;
    out = std::move(*waiter);
    waiters_.erase(waiter);
    return true;
  }
  return false;
}

void UploadPool::Notify(Waiter waiter) {
  waiter.on_ready();
  MutexLock lock(&mutex_);
  notifying_ = nullptr;
  notified_.SignalAll();
}

void UploadPool::Recycle() {
  (void)cudaSetDevice(core_.ordinal());
  while (true) {
    Waiter ready;
    Block* block = nullptr;
    {
      MutexLock lock(&mutex_);
      bool found = TakeReadyWaiter(ready);
      while (!found && in_flight_.empty() && !stopping_) {
        wake_.Wait(&mutex_);
        found = TakeReadyWaiter(ready);
      }
      if (found) {
        notifying_ = ready.uploader;
      } else if (!in_flight_.empty()) {
        block = in_flight_.front();
      } else {
        return;
      }
    }
    if (block == nullptr) {
      Notify(std::move(ready));
      continue;
    }
    // Whatever went wrong, the upload's own next call says so too.
    core_.Observe(CudaStatus(cudaEventSynchronize(block->copied.get()), "cudaEventSynchronize"))
        .IgnoreError();
    MutexLock lock(&mutex_);
    in_flight_.pop_front();
    if (block->owner != nullptr) {
      block->owner->pool_.mutex_.AssertHeld();
      --block->owner->in_flight_;
    }
    block->owner = nullptr;
    free_.push_back(block);
  }
}

}  // namespace crout
