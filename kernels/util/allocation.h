// SPDX-License-Identifier: Apache-2.0

// Handling of failed allocations of the standard library.
#ifndef CROUT_KERNELS_UTIL_ALLOCATION_H_
#define CROUT_KERNELS_UTIL_ALLOCATION_H_

#include <atomic>
#include <cstdint>
#include <new>

#include "absl/status/status.h"

namespace crout {

// Falls back to the code alone if there is no memory for the message.
inline absl::Status StatusOf(absl::StatusCode code, const char* message) {
  try {
    return {code, message};
  } catch (const std::bad_alloc&) {
    return {code, ""};
  }
}

inline absl::Status OutOfSystemMemory() {
  return StatusOf(absl::StatusCode::kResourceExhausted, "the system is out of memory");
}

// Runs `work`, which returns a status, and converts std::bad_alloc to RESOURCE_EXHAUSTED. For code
// without an exception handler above it. All other errors must already be statuses.
template <class Work>
absl::Status CatchBadAlloc(Work work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return OutOfSystemMemory();
  }
}

// Number of tasks that AbandonOnBadAlloc() abandoned since the process started.
inline std::atomic<uint64_t> abandoned_tasks = 0;
inline uint64_t AbandonedTasks() { return abandoned_tasks; }

// Runs background work on a thread that must survive. std::bad_alloc ends only this work and is
// counted. If a caller waits for the result, the work itself must report the failure.
template <class Work>
void AbandonOnBadAlloc(Work work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    ++abandoned_tasks;
  }
}

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_ALLOCATION_H_
