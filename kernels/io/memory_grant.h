// Leave to use memory, asked for before the memory is.
#ifndef CROUT_KERNELS_IO_MEMORY_GRANT_H_
#define CROUT_KERNELS_IO_MEMORY_GRANT_H_

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"

namespace crout {

// Implemented by whoever accounts for the memory. Thread-safe.
class MemoryGrant {
 public:
  virtual ~MemoryGrant() = default;

  // `bytes` more, all or nothing. Never blocks.
  virtual bool TryTake(size_t bytes) = 0;
  // Likewise, but may first free memory that others hold and need not. An error, RESOURCE_EXHAUSTED
  // as a rule, says that there is none to be had: it does not wait for others to be done.
  virtual absl::Status Take(size_t bytes) = 0;

  // Gives back some of what was taken, once it is free. Never blocks.
  virtual void Give(size_t bytes) = 0;
};

// What was taken of a grant, if there is one: given back at the end, once all else is free.
class TakenMemory {
 public:
  explicit TakenMemory(MemoryGrant* grant) : grant_(grant) {}
  ~TakenMemory() { Keep(0); }
  TakenMemory(const TakenMemory&) = delete;  // One has to give back.
  TakenMemory& operator=(const TakenMemory&) = delete;

  void Add(size_t bytes) { bytes_ += bytes; }
  // Gives back all but `bytes`.
  void Keep(size_t bytes) {
    if (grant_ == nullptr || bytes >= bytes_) return;
    grant_->Give(bytes_ - bytes);
    bytes_ = bytes;
  }
  // Gives nothing back: someone else will.
  void Forget(size_t bytes) { bytes_ -= std::min(bytes, bytes_); }

 private:
  MemoryGrant* const grant_;
  size_t bytes_ = 0;
};

}  // namespace crout

#endif  // CROUT_KERNELS_IO_MEMORY_GRANT_H_
