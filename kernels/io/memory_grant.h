// Leave to use memory, asked for before the memory is.
#ifndef CROUT_KERNELS_IO_MEMORY_GRANT_H_
#define CROUT_KERNELS_IO_MEMORY_GRANT_H_

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

}  // namespace crout

#endif  // CROUT_KERNELS_IO_MEMORY_GRANT_H_
