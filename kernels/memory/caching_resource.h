// A memory resource that keeps freed blocks for the next job: no driver or kernel call, and no page
// fault, on the hot path.
#ifndef CROUT_KERNELS_MEMORY_CACHING_RESOURCE_H_
#define CROUT_KERNELS_MEMORY_CACHING_RESOURCE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "kernels/memory.h"
#include "kernels/util/mutex.h"

namespace crout {

// Where a CachingResource gets blocks that it does not have: the system or a device's driver.
// Thread-safe.
class BlockSource {
 public:
  virtual ~BlockSource() = default;

  // A block of exactly `bytes` bytes (> 0), aligned to 256; RESOURCE_EXHAUSTED if there is none.
  virtual absl::StatusOr<void*> Acquire(size_t bytes) = 0;

  // Takes back a block of Acquire(bytes).
  virtual void Release(void* block, size_t bytes) = 0;
};

// Requests are rounded up to BlockBytes(), each size with a free list. When the source has nothing
// left, everything cached goes back to it and the request is tried once more. Thread-safe.
class CachingResource final : public MemoryResource {
 public:
  struct Stats {
    size_t bytes_in_use = 0;  // in blocks handed out, as rounded up
    size_t bytes_cached = 0;  // in blocks kept for later
  };

  // Keeps up to `max_cached_bytes` of free blocks, of any size, and no more than leaves those and
  // what is handed out together within `max_held_bytes`; beyond, the classes used least recently
  // are given back first. What is asked for is handed out whatever is held: that is for a budget to
  // say.
  CachingResource(std::unique_ptr<BlockSource> source, size_t max_cached_bytes,
                  size_t max_held_bytes = std::numeric_limits<size_t>::max());
  ~CachingResource() override;

  bool HasFree(size_t bytes) const override;

  // The blocks used least recently go first.
  size_t TrimTo(size_t bytes) override;

  Stats stats() const;

 protected:
  absl::StatusOr<void*> DoAllocate(size_t bytes) override;
  void DoDeallocate(void* data, size_t bytes) override;

 private:
  struct FreeList {
    size_t block_bytes = 0;
    uint64_t last_use = 0;
    std::vector<void*> free;
  };

  // Null where no block of the class is free.
  void* Take(size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether there is a place for the block among the free ones.
  bool Keep(void* block, size_t bytes) noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  // What may be kept beside the blocks handed out and `bytes` more.
  size_t MostCached(size_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives free blocks back until no more than `most` bytes are cached, and what may be beside
  // `bytes` more; returns how many are. Needs no memory.
  size_t GiveBack(size_t most, size_t bytes) noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  FreeList* LeastRecentlyUsed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after construction.
  const std::unique_ptr<BlockSource> source_;
  const size_t max_cached_bytes_;
  const size_t max_held_bytes_;

  mutable Mutex mutex_;
  std::vector<FreeList> classes_ ABSL_GUARDED_BY(mutex_);  // by index of the class
  uint64_t clock_ ABSL_GUARDED_BY(mutex_) = 0;
  Stats stats_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout

#endif  // CROUT_KERNELS_MEMORY_CACHING_RESOURCE_H_
