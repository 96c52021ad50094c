// SPDX-License-Identifier: Apache-2.0

// Updates of matrix entries, as received.
#ifndef CROUT_KERNELS_ENTRY_LIST_H_
#define CROUT_KERNELS_ENTRY_LIST_H_

#include <cstddef>
#include <cstdint>

#include "kernels/dtype.h"

namespace crout {

// A list of entries in one block of memory: `count` values, then `count` row indices, then `count`
// column indices, 0-based. The indices are unchecked.
struct EntryList {
  static constexpr size_t kIndexBytes = 2 * sizeof(int32_t);  // bytes of an entry besides its value

  // `block` has count (SizeOf(dtype) + kIndexBytes) bytes and the alignment of a value.
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
