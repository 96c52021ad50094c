// Allocations of the standard library that fail.
#ifndef CROUT_KERNELS_UTIL_ALLOCATION_H_
#define CROUT_KERNELS_UTIL_ALLOCATION_H_

#include <new>

#include "absl/status/status.h"

namespace crout {

// Runs `work`, which returns a status, where nothing above could catch: std::bad_alloc becomes
// RESOURCE_EXHAUSTED. Not a way to handle other errors, which are statuses already.
template <class Work>
absl::Status CatchBadAlloc(Work work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("the system has no memory left");
  }
}

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_ALLOCATION_H_
