#include "kernels/caching_resource.h"

#include <algorithm>
#include <utility>

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

void* CachingResource::Take(size_t bytes, std::vector<Block>& given_back) {
  const SizeClass id = SizeClassOf(bytes);
  MutexLock lock(&mutex_);
  FreeList& size_class = classes_[id.index];
  size_class.block_bytes = id.block_bytes;
  size_class.last_use = ++clock_;
  if (size_class.free.empty()) {
    EvictTo(MostCached(id.block_bytes), given_back);
    return nullptr;
  }
  void* block = size_class.free.back();
  size_class.free.pop_back();
  stats_.bytes_cached -= id.block_bytes;
  stats_.bytes_in_use += id.block_bytes;
  return block;
}

absl::StatusOr<void*> CachingResource::DoAllocate(size_t bytes) {
  CROUT_RETURN_IF_ERROR(Failpoint("memory.allocate"));
  if (bytes > kLargestBlock) return absl::ResourceExhaustedError("request above 2^62 bytes");
  std::vector<Block> given_back;
  if (void* block = Take(bytes, given_back)) return block;
  GiveBack(given_back);
  CROUT_RETURN_IF_ERROR(Failpoint("memory.acquire"));
  const size_t block_bytes = BlockBytes(bytes);
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
  const SizeClass id = SizeClassOf(bytes);
  std::vector<Block> given_back;
  {
    MutexLock lock(&mutex_);
    stats_.bytes_in_use -= id.block_bytes;
    const size_t most = MostCached(0);
    if (id.block_bytes <= most) {
      EvictTo(most - id.block_bytes, given_back);
      FreeList& size_class = classes_[id.index];
      size_class.last_use = ++clock_;
      size_class.free.push_back(data);
      stats_.bytes_cached += id.block_bytes;
    } else {
      given_back.push_back({data, id.block_bytes});
    }
  }
  GiveBack(given_back);
}

size_t CachingResource::MostCached(size_t bytes) const {
  const size_t handed_out = std::min(stats_.bytes_in_use + bytes, max_held_bytes_);
  return std::min(max_cached_bytes_, max_held_bytes_ - handed_out);
}

void CachingResource::GiveBack(const std::vector<Block>& blocks) {
  // Unmapping takes milliseconds for large blocks: not under the lock.
  for (const Block& block : blocks) source_->Release(block.data, block.bytes);
}

CachingResource::FreeList* CachingResource::LeastRecentlyUsed() {
  FreeList* oldest = nullptr;
  for (FreeList& size_class : classes_) {
    if (size_class.free.empty()) continue;
    if (oldest == nullptr || size_class.last_use < oldest->last_use) oldest = &size_class;
  }
  return oldest;
}

void CachingResource::EvictTo(size_t most, std::vector<Block>& evicted) {
  while (stats_.bytes_cached > most) {
    FreeList* size_class = LeastRecentlyUsed();
    evicted.push_back({size_class->free.back(), size_class->block_bytes});
    size_class->free.pop_back();
    stats_.bytes_cached -= size_class->block_bytes;
  }
}

size_t CachingResource::TrimTo(size_t bytes) {
  std::vector<Block> given_back;
  size_t kept = 0;
  {
    MutexLock lock(&mutex_);
    EvictTo(bytes, given_back);
    kept = stats_.bytes_cached;
  }
  GiveBack(given_back);
  return kept;
}

CachingResource::Stats CachingResource::stats() const {
  MutexLock lock(&mutex_);
  return stats_;
}

}  // namespace crout
