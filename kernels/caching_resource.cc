#include "kernels/caching_resource.h"

#include <bit>
#include <utility>

namespace crout {
namespace {

constexpr size_t kMinBlock = 4096;  // One class up to here.
constexpr int kClassesPerOctave = 16;

// Classes above kMinBlock are numbered by octave and by sixteenth of it.
struct ClassId {
  size_t index;
  size_t block_bytes;
};

ClassId Classify(size_t bytes) {
  if (bytes <= kMinBlock) return {0, kMinBlock};
  const int octave = std::bit_width(bytes - 1) - 1;  // 2^octave < bytes <= 2^(octave + 1)
  const size_t base = size_t{1} << octave;
  const size_t step = base / kClassesPerOctave;
  const size_t steps = (bytes - base + step - 1) / step;  // 1..16
  const size_t octaves_below = octave - (std::bit_width(kMinBlock) - 1);
  return {octaves_below * kClassesPerOctave + steps, base + steps * step};
}

constexpr size_t kLargestRequest = size_t{1} << 62;

}  // namespace

CachingResource::CachingResource(std::unique_ptr<BlockSource> source, size_t max_cached_bytes)
    : source_(std::move(source)), max_cached_bytes_(max_cached_bytes) {
  MutexLock lock(&mutex_);
  classes_.resize(Classify(kLargestRequest).index + 1);
}

CachingResource::~CachingResource() { Trim(); }

size_t CachingResource::RoundUp(size_t bytes) { return Classify(bytes).block_bytes; }

void* CachingResource::Take(size_t bytes) {
  const ClassId id = Classify(bytes);
  MutexLock lock(&mutex_);
  SizeClass& size_class = classes_[id.index];
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
  if (bytes > kLargestRequest) return absl::ResourceExhaustedError("request above 2^62 bytes");
  if (void* block = Take(bytes)) return block;
  const size_t block_bytes = RoundUp(bytes);
  auto block = source_->Acquire(block_bytes);
  if (!block.ok()) {
    Trim();
    block = source_->Acquire(block_bytes);
  }
  if (!block.ok()) return block.status();
  MutexLock lock(&mutex_);
  stats_.bytes_in_use += block_bytes;
  return *block;
}

void CachingResource::DoDeallocate(void* data, size_t bytes) {
  const ClassId id = Classify(bytes);
  std::vector<Block> given_back;
  {
    MutexLock lock(&mutex_);
    stats_.bytes_in_use -= id.block_bytes;
    if (id.block_bytes <= max_cached_bytes_) {
      if (stats_.bytes_cached + id.block_bytes > max_cached_bytes_) {
        given_back = EvictFor(id.block_bytes);
      }
      SizeClass& size_class = classes_[id.index];
      size_class.last_use = ++clock_;
      size_class.free.push_back(data);
      stats_.bytes_cached += id.block_bytes;
    } else {
      given_back.push_back({data, id.block_bytes});
    }
  }
  // Unmapping takes milliseconds for large blocks: not under the lock.
  for (const Block& block : given_back) source_->Release(block.data, block.bytes);
}

CachingResource::SizeClass* CachingResource::LeastRecentlyUsed() {
  SizeClass* oldest = nullptr;
  for (SizeClass& size_class : classes_) {
    if (size_class.free.empty()) continue;
    if (oldest == nullptr || size_class.last_use < oldest->last_use) oldest = &size_class;
  }
  return oldest;
}

std::vector<CachingResource::Block> CachingResource::EvictFor(size_t bytes) {
  std::vector<Block> evicted;
  while (stats_.bytes_cached + bytes > max_cached_bytes_) {
    SizeClass* size_class = LeastRecentlyUsed();
    evicted.push_back({size_class->free.back(), size_class->block_bytes});
    size_class->free.pop_back();
    stats_.bytes_cached -= size_class->block_bytes;
  }
  return evicted;
}

void CachingResource::Trim() {
  std::vector<Block> all;
  {
    MutexLock lock(&mutex_);
    for (SizeClass& size_class : classes_) {
      for (void* block : size_class.free) all.push_back({block, size_class.block_bytes});
      size_class.free.clear();
    }
    stats_.bytes_cached = 0;
  }
  for (const Block& block : all) source_->Release(block.data, block.bytes);
}

CachingResource::Stats CachingResource::stats() const {
  MutexLock lock(&mutex_);
  return stats_;
}

}  // namespace crout
