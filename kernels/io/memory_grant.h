// SPDX-License-Identifier: Apache-2.0

// Accounting interface: memory is requested before it is allocated.
#ifndef CROUT_KERNELS_IO_MEMORY_GRANT_H_
#define CROUT_KERNELS_IO_MEMORY_GRANT_H_

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"

namespace crout {

// Implemented by the owner of a memory budget. Thread-safe.
class MemoryGrant {
 public:
  virtual ~MemoryGrant() = default;

  // Takes `bytes` more, all or nothing. Never blocks.
  virtual bool TryTake(size_t bytes) = 0;
  // Takes `bytes` more, and may first free memory that is held but not in use. Returns an error,
  // usually RESOURCE_EXHAUSTED, if there is none left. Does not wait for other users of the budget.
  virtual absl::Status Take(size_t bytes) = 0;

  // Gives back memory that was taken and is free again. Never blocks.
  virtual void Give(size_t bytes) = 0;
};

// Memory taken from a grant, which may be null. Gives it back on destruction, after everything else
// is freed.
class TakenMemory {
 public:
  explicit TakenMemory(MemoryGrant* grant) : grant_(grant) {}
  ~TakenMemory() { Keep(0); }
  TakenMemory(const TakenMemory&) = delete;  // Exactly one object gives back.
  TakenMemory& operator=(const TakenMemory&) = delete;

  // Accounts for `bytes` that were taken from the grant.
  void Add(size_t bytes) { bytes_ += bytes; }
  // Gives back all but `bytes`.
  void Keep(size_t bytes) {
    if (grant_ == nullptr || bytes >= bytes_) return;
    grant_->Give(bytes_ - bytes);
    bytes_ = bytes;
  }
  // Stops accounting for `bytes`, which another owner gives back.
  void Forget(size_t bytes) { bytes_ -= std::min(bytes, bytes_); }

 private:
  MemoryGrant* const grant_;
  size_t bytes_ = 0;
};

}  // namespace crout

#endif  // CROUT_KERNELS_IO_MEMORY_GRANT_H_
