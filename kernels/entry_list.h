// Entries of a matrix that have new values, as they arrive.
#ifndef CROUT_KERNELS_ENTRY_LIST_H_
#define CROUT_KERNELS_ENTRY_LIST_H_

#include <cstddef>
#include <cstdint>

#include "kernels/dtype.h"

namespace crout {

// All in one block of memory: `count` values, then as many row indices, then as many column
// indices, 0-based. What the indices are worth is not known before they were looked at.
struct EntryList {
  static constexpr size_t kIndexBytes = 2 * sizeof(int32_t);  // of an entry, beside its value

  // `block`: count (SizeOf(dtype) + kIndexBytes) bytes, aligned as a value.
  EntryList(const std::byte* block, DType dtype, int64_t count)
      : dtype(dtype),
        count(count),
        values(block),
        rows(reinterpret_cast<const int32_t*>(block + count * SizeOf(dtype))),
        cols(rows + count) {}

  DType dtype;
  int64_t count;
  const std::byte* values;
  const int32_t* rows;
  const int32_t* cols;
};

}  // namespace crout

#endif  // CROUT_KERNELS_ENTRY_LIST_H_
