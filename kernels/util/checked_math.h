// SPDX-License-Identifier: Apache-2.0

// Overflow-checked byte counts for dimensions from untrusted input.
#ifndef CROUT_KERNELS_UTIL_CHECKED_MATH_H_
#define CROUT_KERNELS_UTIL_CHECKED_MATH_H_

#include <cstddef>
#include <cstdint>
#include <limits>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/dtype.h"
#include "kernels/util/size_class.h"
#include "kernels/util/strings.h"

namespace crout {

// Returns the bytes of rows * cols elements of `dtype`. INVALID_ARGUMENT if a count is negative or
// the bytes do not fit ptrdiff_t.
inline absl::StatusOr<size_t> MatrixBytes(int64_t rows, int64_t cols, DType dtype) {
  int64_t bytes = 0;
  if (rows < 0 || cols < 0 || __builtin_mul_overflow(rows, cols, &bytes) ||
      __builtin_mul_overflow(bytes, static_cast<int64_t>(SizeOf(dtype)), &bytes)) {
    return absl::InvalidArgumentError(absl::StrCat("the size of a ", rows, " x ", cols,
                                                   " matrix of ", ToAbsl(NameOf(dtype)),
                                                   " is negative or overflows"));
  }
  return static_cast<size_t>(bytes);
}

// Adds up byte counts. After an overflow, total() is an error.
class ByteSum {
 public:
  // Adds a separate buffer, with its size rounded up to a block.
  ByteSum& AddBuffer(size_t bytes) { return Add(BlockBytes(bytes)); }
  ByteSum& Add(size_t bytes) {
    overflow_ |= __builtin_add_overflow(total_, bytes, &total_);
    return *this;
  }
  absl::StatusOr<size_t> total() const {
    if (overflow_ || total_ > static_cast<size_t>(std::numeric_limits<int64_t>::max())) {
      return absl::InvalidArgumentError("the memory that the job needs overflows");
    }
    return total_;
  }

 private:
  size_t total_ = 0;
  bool overflow_ = false;
};

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_CHECKED_MATH_H_
