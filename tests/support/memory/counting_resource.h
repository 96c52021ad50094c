// SPDX-License-Identifier: Apache-2.0

// A memory resource of limited size that counts its allocations.
#ifndef CROUT_TESTS_SUPPORT_MEMORY_COUNTING_RESOURCE_H_
#define CROUT_TESTS_SUPPORT_MEMORY_COUNTING_RESOURCE_H_

#include <cstddef>
#include <set>

#include "absl/base/thread_annotations.h"
#include "kernels/memory.h"
#include "kernels/util/mutex.h"
#include "tests/support/timing/gate.h"

namespace crout::testing {

// Allocates blocks of exactly the requested size from the heap, so that AddressSanitizer detects
// every overrun. Counts each block with the size that it would have in a CachingResource. Returns
// RESOURCE_EXHAUSTED if the counted sizes of the live blocks would exceed `capacity` bytes.
// Thread-safe.
class CountingResource final : public MemoryResource {
 public:
  explicit CountingResource(size_t capacity) : capacity_(capacity) {}

  size_t capacity() const { return capacity_; }
  size_t live_bytes() const;
  int live_buffers() const;
  size_t peak_bytes() const;
  void ResetPeak();  // sets the peak to the live bytes

  // After `after` more allocations have succeeded, the next `count` fail with RESOURCE_EXHAUSTED.
  void FailAllocations(int count, int after = 0);

  // Holds allocations and frees while closed.
  Gate& gate() { return gate_; }

  // Mark the begin and the end of device work on the block that begins at `data`. freed_in_use()
  // counts the blocks that were freed in between.
  void BeginUse(const void* data);
  void EndUse(const void* data);
  int freed_in_use() const;

 protected:
  absl::StatusOr<void*> DoAllocate(size_t bytes) override;
  void DoDeallocate(void* data, size_t bytes) override;

 private:
  bool TakesFault() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t capacity_;
  Gate gate_;
  mutable Mutex mutex_;
  size_t live_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t peak_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int live_buffers_ ABSL_GUARDED_BY(mutex_) = 0;
  int faults_ ABSL_GUARDED_BY(mutex_) = 0;
  int before_faults_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<const void*> in_use_ ABSL_GUARDED_BY(mutex_);
  int freed_in_use_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_MEMORY_COUNTING_RESOURCE_H_
