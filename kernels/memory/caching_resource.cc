// SPDX-License-Identifier: Apache-2.0

#include "kernels/memory/caching_resource.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/util/failpoint.h"
#include "kernels/util/size_class.h"
#include "kernels/util/status_macros.h"

namespace crout {

CachingResource::CachingResource(std::unique_ptr<BlockSource> source, size_t max_cached_bytes,
                                 size_t max_held_bytes)
    : source_(std::move(source)),
      max_cached_bytes_(max_cached_bytes),
      max_held_bytes_(max_held_bytes) {
  MutexLock lock(&mutex_);
  classes_.resize(SizeClassOf(kLargestBlock).index + 1);
}

CachingResource::~CachingResource() { TrimTo(0); }

void* CachingResource::Take(size_t bytes) {
  const SizeClass id = SizeClassOf(bytes);
  MutexLock lock(&mutex_);
  FreeList& size_class = classes_[id.index];
  size_class.block_bytes = id.block_bytes;
  size_class.last_use = ++clock_;
  if (size_class.free.empty()) return nullptr;
  void* block = size_class.free.back();
  size_class.free.pop_back();
  stats_.bytes_cached -= id.block_bytes;
  stats_.bytes_in_use += id.block_bytes;
  return block;
}

absl::StatusOr<void*> CachingResource::DoAllocate(size_t bytes) {
  CROUT_RETURN_IF_ERROR(Failpoint("memory.allocate"));
  if (bytes > kLargestBlock)
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot allocate ", bytes, " bytes; the limit is 2^62"));
  if (void* block = Take(bytes)) return block;
  const size_t block_bytes = BlockBytes(bytes);
  GiveBack(max_cached_bytes_, block_bytes);  // Frees cached blocks to make room for the new one.
  CROUT_RETURN_IF_ERROR(Failpoint("memory.acquire"));
  auto block = source_->Acquire(block_bytes);
  if (!block.ok()) {
    TrimTo(0);
    block = source_->Acquire(block_bytes);
  }
  if (!block.ok()) return block.status();
  MutexLock lock(&mutex_);
  stats_.bytes_in_use += block_bytes;
  return *block;
}

void CachingResource::DoDeallocate(void* data, size_t bytes) {
  if (Keep(data, bytes)) {
    GiveBack(max_cached_bytes_, 0);
  } else {
    source_->Release(data, BlockBytes(bytes));
  }
}

bool CachingResource::Keep(void* block, size_t bytes) noexcept {
  const SizeClass id = SizeClassOf(bytes);
  MutexLock lock(&mutex_);
  stats_.bytes_in_use -= id.block_bytes;
  if (id.block_bytes > MaxCachedBytes(0)) return false;
  FreeList& size_class = classes_[id.index];
  try {
    size_class.free.push_back(block);
  } catch (const std::bad_alloc&) {
    return false;
  }
  size_class.last_use = ++clock_;
  stats_.bytes_cached += id.block_bytes;
  return true;
}

size_t CachingResource::MaxCachedBytes(size_t bytes) const {
  const size_t handed_out = std::min(stats_.bytes_in_use + bytes, max_held_bytes_);
  return std::min(max_cached_bytes_, max_held_bytes_ - handed_out);
}

size_t CachingResource::GiveBack(size_t most, size_t bytes) noexcept {
  while (true) {
    void* block = nullptr;
    size_t block_bytes = 0;
    {
      MutexLock lock(&mutex_);
      if (stats_.bytes_cached <= std::min(most, MaxCachedBytes(bytes))) return stats_.bytes_cached;
      FreeList& size_class = *LeastRecentlyUsed();
      block = size_class.free.back();
      block_bytes = size_class.block_bytes;
      size_class.free.pop_back();
      stats_.bytes_cached -= block_bytes;
    }
    // Released outside the lock: unmapping a large block takes milliseconds.
    source_->Release(block, block_bytes);
  }
}

CachingResource::FreeList* CachingResource::LeastRecentlyUsed() {
  FreeList* oldest = nullptr;
  for (FreeList& size_class : classes_) {
    if (size_class.free.empty()) continue;
    if (oldest == nullptr || size_class.last_use < oldest->last_use) oldest = &size_class;
  }
  return oldest;
}

bool CachingResource::HasFree(size_t bytes) const {
  if (bytes > kLargestBlock) return false;
  MutexLock lock(&mutex_);
  return !classes_[SizeClassOf(bytes).index].free.empty();
}

size_t CachingResource::TrimTo(size_t bytes) { return GiveBack(bytes, 0); }

CachingResource::Stats CachingResource::stats() const {
  MutexLock lock(&mutex_);
  return stats_;
}

}  // namespace crout
