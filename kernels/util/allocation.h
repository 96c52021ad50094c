// Allocations of the standard library that fail.
#ifndef CROUT_KERNELS_UTIL_ALLOCATION_H_
#define CROUT_KERNELS_UTIL_ALLOCATION_H_

#include <atomic>
#include <cstdint>
#include <new>

#include "absl/status/status.h"

namespace crout {

// A message is memory, too: where there is none for it, the code alone.
inline absl::Status StatusOf(absl::StatusCode code, const char* message) {
  try {
    return {code, message};
  } catch (const std::bad_alloc&) {
    return {code, ""};
  }
}

inline absl::Status OutOfSystemMemory() {
  return StatusOf(absl::StatusCode::kResourceExhausted, "the system has no memory left");
}

// Runs `work`, which returns a status, where nothing above could catch: std::bad_alloc becomes
// RESOURCE_EXHAUSTED. Not a way to handle other errors, which are statuses already.
template <class Work>
absl::Status CatchBadAlloc(Work work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return OutOfSystemMemory();
  }
}

// Times that GoOnWithoutMemory() had to, since the process began.
inline std::atomic<uint64_t> work_without_memory = 0;
inline uint64_t WorkWithoutMemory() { return work_without_memory; }

// Runs `work` for which nobody waits, on a thread that is to go on: std::bad_alloc ends the work
// alone, and is counted. Who waits for an answer must be told by the work itself.
template <class Work>
void GoOnWithoutMemory(Work work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    ++work_without_memory;
  }
}

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_ALLOCATION_H_
