// Staging blocks of a device: host memory that uploads fill while the blocks before are copied.
#ifndef CROUT_KERNELS_MEMORY_STAGING_POOL_H_
#define CROUT_KERNELS_MEMORY_STAGING_POOL_H_

#include <cstddef>
#include <deque>
#include <span>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "kernels/memory.h"
#include "kernels/util/mutex.h"

namespace crout {

struct StagingPoolOptions {
  size_t block_bytes = 0;
  int blocks = 0;
  int copies_per_upload = 0;  // at most, at a time
};

// Lends blocks of `memory` to uploads, and waits on a thread of its own for their copies, so that
// nobody else does. Knows nothing of the device. Thread-safe; outlives its uploads.
class StagingPool {
 public:
  class Upload;

  // `await_copy`, called on the pool's thread, returns when the copy of the block with that index,
  // sent last, has ended.
  StagingPool(Buffer memory, const StagingPoolOptions& options,
              absl::AnyInvocable<void(int block)> await_copy);
  // Waits for the copies in flight.
  ~StagingPool();

  // Fewer than half of the blocks are free.
  bool scarce() const;

 private:
  struct Block {
    std::byte* data = nullptr;
    Upload* owner = nullptr;  // null: free, or its upload ended first
  };
  // A block was kept for `upload`, which is to be told.
  struct Grant {
    Upload* upload = nullptr;
    absl::AnyInvocable<void()> on_ready;
  };

  // The loop of thread_: gives copied blocks back and wakes uploads that wait for one.
  void Recycle();
  Block* TakeFree(Upload& upload) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // To the first upload that waits and may have a block; false if there is none.
  bool GrantNext(Grant& grant) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Notify(Grant grant) ABSL_LOCKS_EXCLUDED(mutex_);
  void TakeBack(Block* block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after construction.
  const StagingPoolOptions options_;
  const Buffer memory_;  // of all blocks
  absl::AnyInvocable<void(int block)> await_copy_;

  mutable Mutex mutex_;
  CondVar wake_;      // the thread: something may be there to do
  CondVar notified_;  // a destructor: notifying_ changed
  std::vector<Block> blocks_ ABSL_GUARDED_BY(mutex_);
  std::vector<Block*> free_ ABSL_GUARDED_BY(mutex_);
  std::deque<Block*> in_flight_ ABSL_GUARDED_BY(mutex_);  // about in the order of the copies
  std::deque<Upload*> waiting_ ABSL_GUARDED_BY(mutex_);
  const Upload* notifying_ ABSL_GUARDED_BY(mutex_) = nullptr;  // its on_ready is running
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // the last member: it uses all others
};

// What one upload has of the pool: at most one block at hand, and others whose copies are in
// flight. One thread at a time.
class StagingPool::Upload {
 public:
  explicit Upload(StagingPool& pool) : pool_(pool) {}
  // Gives everything back. No on_ready of this upload runs from then on, but for the one that
  // destroys it.
  ~Upload();
  Upload(const Upload&) = delete;  // The pool keeps its address.
  Upload& operator=(const Upload&) = delete;

  // The block at hand, which is another one after Send or Return. Empty where none is free, or too
  // many of this upload's are in flight: then `on_ready` is called once, on the pool's thread, when
  // one is kept for this upload. Called again while it waits, `on_ready` takes the place of the
  // one before, which is dropped.
  std::span<std::byte> Take(absl::AnyInvocable<void()> on_ready);

  // The index of the block at hand; -1 without one.
  int block() const;

  // A copy of the block at hand has been enqueued.
  void Send();

  // The block at hand, unused, is for others.
  void Return();

 private:
  friend class StagingPool;

  StagingPool& pool_;
  Block* current_ = nullptr;
  // By the pool's thread too.
  Block* granted_ ABSL_GUARDED_BY(pool_.mutex_) = nullptr;
  absl::AnyInvocable<void()> on_ready_ ABSL_GUARDED_BY(pool_.mutex_);  // set while it waits
  int in_flight_ ABSL_GUARDED_BY(pool_.mutex_) = 0;
};

}  // namespace crout

#endif  // CROUT_KERNELS_MEMORY_STAGING_POOL_H_
