// SPDX-License-Identifier: Apache-2.0

// A memory resource that caches freed blocks, so that the hot path makes no driver or system calls
// and takes no page faults.
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

// Supplies the blocks of a CachingResource: the system or a device driver. Thread-safe.
class BlockSource {
 public:
  virtual ~BlockSource() = default;

  // Allocates exactly `bytes` bytes (> 0), aligned to 256. RESOURCE_EXHAUSTED if memory is short.
  virtual absl::StatusOr<void*> Acquire(size_t bytes) = 0;

  // Frees a block of Acquire(bytes).
  virtual void Release(void* block, size_t bytes) = 0;
};

// Rounds requests up to BlockBytes(), with one free list per size. If the source fails, the
// resource returns all cached blocks to it and tries once more. Thread-safe.
class CachingResource : public MemoryResource {
 public:
  struct Stats {
    size_t bytes_in_use = 0;  // allocated blocks, rounded up
    size_t bytes_cached = 0;  // free blocks
  };

  // Caches up to `max_cached_bytes` of free blocks, and fewer if cached and allocated blocks
  // together would exceed `max_held_bytes`. The least recently used size classes are released
  // first. Neither limit restricts allocation; that is the task of a budget.
  CachingResource(std::unique_ptr<BlockSource> source, size_t max_cached_bytes,
                  size_t max_held_bytes = std::numeric_limits<size_t>::max());
  ~CachingResource() override;

  bool HasFree(size_t bytes) const override;

  // Releases the least recently used size classes first.
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

  // Returns null if no block of the class is free.
  void* Take(size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds a freed block to its free list. Returns false if it may not be cached.
  bool Keep(void* block, size_t bytes) noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  // Bytes that may be cached while `bytes` more than now are allocated.
  size_t MaxCachedBytes(size_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Releases free blocks until at most `most` bytes are cached and there is room for `bytes` more
  // allocated bytes. Returns the bytes still cached. Allocates no memory.
  size_t GiveBack(size_t most, size_t bytes) noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  FreeList* LeastRecentlyUsed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after construction.
  const std::unique_ptr<BlockSource> source_;
  const size_t max_cached_bytes_;
  const size_t max_held_bytes_;

  mutable Mutex mutex_;
  std::vector<FreeList> classes_ ABSL_GUARDED_BY(mutex_);  // by class index
  uint64_t clock_ ABSL_GUARDED_BY(mutex_) = 0;
  Stats stats_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout

#endif  // CROUT_KERNELS_MEMORY_CACHING_RESOURCE_H_
