// SPDX-License-Identifier: Apache-2.0

// Numbers of the factors that ranks keep on their GPUs.
#ifndef CROUT_SERVER_GROUPS_GPU_COPIES_H_
#define CROUT_SERVER_GROUPS_GPU_COPIES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/util/mutex.h"

namespace crout {

// Assigns a number to each factor used in a solve, keyed by the address of its matrix in the shared
// memory. The memory of a factor does not change from its first solve on until it is freed.
// Thread-safe.
class GpuCopies {
 public:
  // Returns the number of the factor at this address.
  uint64_t NumberOf(const void* factor) {
    MutexLock lock(&mutex_);
    const auto [entry, added] = numbers_.try_emplace(factor, last_ + 1);
    if (added) ++last_;
    return entry->second;
  }

  // Returns the numbers of the factors in memory that is freed, and drops them.
  std::vector<uint64_t> Remove(const void* memory, size_t bytes) {
    const auto* const end = static_cast<const std::byte*>(memory) + bytes;
    std::vector<uint64_t> removed;
    MutexLock lock(&mutex_);
    auto entry = numbers_.lower_bound(memory);
    while (entry != numbers_.end() && entry->first < end) {
      removed.push_back(entry->second);
      entry = numbers_.erase(entry);
    }
    return removed;
  }

 private:
  Mutex mutex_;
  std::map<const void*, uint64_t> numbers_ ABSL_GUARDED_BY(mutex_);
  // The factors of MUMPS have smaller numbers.
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = uint64_t{1} << 63;
};

}  // namespace crout

#endif  // CROUT_SERVER_GROUPS_GPU_COPIES_H_
