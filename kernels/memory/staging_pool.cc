// SPDX-License-Identifier: Apache-2.0

#include "kernels/memory/staging_pool.h"

#include <algorithm>
#include <utility>

#include "kernels/util/allocation.h"
#include "kernels/util/thread.h"

namespace crout {

StagingPool::StagingPool(Buffer memory, const StagingPoolOptions& options,
                         absl::AnyInvocable<void(int block)> await_copy)
    : options_(options), memory_(std::move(memory)), await_copy_(std::move(await_copy)) {
  {
    MutexLock lock(&mutex_);
    blocks_.resize(options_.blocks);
    for (size_t i = 0; i < blocks_.size(); ++i) {
      blocks_[i].data = memory_.data() + i * options_.block_bytes;
      free_.push_back(&blocks_[i]);
    }
  }
  thread_ = StartThread([this] { Recycle(); });
}

StagingPool::~StagingPool() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  wake_.SignalAll();
  thread_.join();
}

bool StagingPool::scarce() const {
  MutexLock lock(&mutex_);
  return 2 * free_.size() < blocks_.size();
}

StagingPool::Block* StagingPool::TakeFree(Upload& upload) {
  upload.pool_.mutex_.AssertHeld();  // the same mutex, which the analysis cannot infer
  if (free_.empty() || upload.in_flight_ >= options_.copies_per_upload) return nullptr;
  Block* block = free_.back();
  free_.pop_back();
  block->owner = &upload;
  return block;
}

bool StagingPool::GrantNext(Grant& grant) {
  for (auto waiting = waiting_.begin(); waiting != waiting_.end(); ++waiting) {
    Upload* upload = *waiting;
    Block* block = TakeFree(*upload);
    if (block == nullptr) continue;
    upload->pool_.mutex_.AssertHeld();
    upload->granted_ = block;
    grant = {upload, std::exchange(upload->on_ready_, nullptr)};
    waiting_.erase(waiting);
    return true;
  }
  return false;
}

void StagingPool::TakeBack(Block* block) {
  block->owner = nullptr;
  free_.push_back(block);
  wake_.Signal();
}

void StagingPool::Notify(Grant grant) {
  AbandonOnBadAlloc([&] { grant.on_ready(); });  // on failure, the upload ends by its time limits
  grant.on_ready = nullptr;  // destroyed before the destructor of the upload can continue
  MutexLock lock(&mutex_);
  notifying_ = nullptr;
  notified_.SignalAll();
}

void StagingPool::Recycle() {
  while (true) {
    Grant grant;
    Block* block = nullptr;
    int index = 0;
    {
      MutexLock lock(&mutex_);
      bool granted = GrantNext(grant);
      while (!granted && in_flight_.empty() && !stopping_) {
        wake_.Wait(&mutex_);
        granted = GrantNext(grant);
      }
      if (granted) {
        notifying_ = grant.upload;
      } else if (!in_flight_.empty()) {
        block = in_flight_.front();
        index = static_cast<int>(block - blocks_.data());
      } else {
        return;
      }
    }
    if (block == nullptr) {
      Notify(std::move(grant));
      continue;
    }
    await_copy_(index);
    MutexLock lock(&mutex_);
    in_flight_.pop_front();
    if (block->owner != nullptr) {
      block->owner->pool_.mutex_.AssertHeld();
      --block->owner->in_flight_;
    }
    TakeBack(block);
  }
}

std::span<std::byte> StagingPool::Upload::Take(absl::AnyInvocable<void()> on_ready) {
  if (current_ == nullptr) {
    MutexLock lock(&pool_.mutex_);
    current_ = granted_ != nullptr ? std::exchange(granted_, nullptr) : pool_.TakeFree(*this);
    if (current_ == nullptr) {
      const bool waits = static_cast<bool>(on_ready_);
      std::swap(on_ready_, on_ready);  // the previous callback is destroyed outside the lock
      if (!waits) pool_.waiting_.push_back(this);
      return {};
    }
  }
  return {current_->data, pool_.options_.block_bytes};
}

int StagingPool::Upload::block() const {
  if (current_ == nullptr) return -1;
  MutexLock lock(&pool_.mutex_);
  return static_cast<int>(current_ - pool_.blocks_.data());
}

void StagingPool::Upload::Send() {
  MutexLock lock(&pool_.mutex_);
  pool_.in_flight_.push_back(current_);
  current_ = nullptr;
  ++in_flight_;
  pool_.wake_.Signal();
}

void StagingPool::Upload::Return() {
  MutexLock lock(&pool_.mutex_);
  pool_.TakeBack(std::exchange(current_, nullptr));
}

StagingPool::Upload::~Upload() {
  absl::AnyInvocable<void()> dropped;  // destroyed outside the lock
  MutexLock lock(&pool_.mutex_);
  std::erase(pool_.waiting_, this);
  dropped = std::exchange(on_ready_, nullptr);
  // A running on_ready may still use objects that the caller is about to free, so wait for it. If
  // the destructor runs inside on_ready, on the pool's thread, do not wait.
  while (pool_.notifying_ == this && std::this_thread::get_id() != pool_.thread_.get_id()) {
    pool_.notified_.Wait(&pool_.mutex_);
  }
  for (Block* block : pool_.in_flight_) {
    if (block->owner == this) block->owner = nullptr;
  }
  for (Block* block : {current_, granted_}) {
    if (block != nullptr) pool_.TakeBack(block);
  }
}

}  // namespace crout
