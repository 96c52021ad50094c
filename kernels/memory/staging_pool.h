// SPDX-License-Identifier: Apache-2.0

// Staging blocks of a device: host memory that uploads fill while earlier blocks are being copied.
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
  int copies_per_upload = 0;  // concurrent copies of one upload
};

// Lends blocks of `memory` to uploads and waits for their copies on its own thread, so that no
// other thread blocks. Independent of the device. Thread-safe; outlives its uploads.
class StagingPool {
 public:
  class Upload;

  // `await_copy` runs on the pool's thread. It returns when the most recent copy of the block with
  // that index has completed.
  StagingPool(Buffer memory, const StagingPoolOptions& options,
              absl::AnyInvocable<void(int block)> await_copy);
  // Waits for copies in flight.
  ~StagingPool();

  // Returns true if fewer than half of the blocks are free.
  bool scarce() const;

 private:
  struct Block {
    std::byte* data = nullptr;
    Upload* owner = nullptr;  // null if the block is free, or its upload was destroyed first
  };
  // A block reserved for `upload`, which must be notified.
  struct Grant {
    Upload* upload = nullptr;
    absl::AnyInvocable<void()> on_ready;
  };

  // The loop of thread_: recycles copied blocks and notifies waiting uploads.
  void Recycle();
  Block* TakeFree(Upload& upload) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Grants a block to the first waiting upload that may have one. Returns false if there is none.
  bool GrantNext(Grant& grant) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Notify(Grant grant) ABSL_LOCKS_EXCLUDED(mutex_);
  void TakeBack(Block* block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after construction.
  const StagingPoolOptions options_;
  const Buffer memory_;  // backs all blocks
  absl::AnyInvocable<void(int block)> await_copy_;

  mutable Mutex mutex_;
  CondVar wake_;      // for the thread: work may be available
  CondVar notified_;  // for a destructor: notifying_ changed
  std::vector<Block> blocks_ ABSL_GUARDED_BY(mutex_);
  std::vector<Block*> free_ ABSL_GUARDED_BY(mutex_);
  // Approximately in the order of the copies.
  std::deque<Block*> in_flight_ ABSL_GUARDED_BY(mutex_);
  std::deque<Upload*> waiting_ ABSL_GUARDED_BY(mutex_);
  // The upload whose on_ready is running.
  const Upload* notifying_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // last member, because it uses all others
};

// The blocks of one upload: at most one current block, and others whose copies are in flight. Used
// by one thread at a time.
class StagingPool::Upload {
 public:
  explicit Upload(StagingPool& pool) : pool_(pool) {}
  // Returns all blocks. Afterwards no on_ready of this upload runs, except one that is destroying
  // the upload.
  ~Upload();
  Upload(const Upload&) = delete;  // The pool stores its address.
  Upload& operator=(const Upload&) = delete;

  // Returns the current block; Send and Return end its use. Returns an empty span if no block is
  // free or too many copies of this upload are in flight. Then `on_ready` is called once, on the
  // pool's thread, when a block was reserved for this upload. A second call while waiting replaces
  // the previous `on_ready`, which is destroyed without being called.
  std::span<std::byte> Take(absl::AnyInvocable<void()> on_ready);

  // Returns the index of the current block, or -1 if there is none.
  int block() const;

  // Reports that a copy of the current block has been enqueued.
  void Send();

  // Returns the current block unused.
  void Return();

 private:
  friend class StagingPool;

  StagingPool& pool_;
  Block* current_ = nullptr;
  // Also set by the pool's thread.
  Block* granted_ ABSL_GUARDED_BY(pool_.mutex_) = nullptr;
  absl::AnyInvocable<void()> on_ready_ ABSL_GUARDED_BY(pool_.mutex_);  // set while the upload waits
  int in_flight_ ABSL_GUARDED_BY(pool_.mutex_) = 0;
};

}  // namespace crout

#endif  // CROUT_KERNELS_MEMORY_STAGING_POOL_H_
