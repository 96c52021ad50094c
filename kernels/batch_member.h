// Where a member of an irregular batch lies. C++17: kernels include it.
#ifndef CROUT_KERNELS_BATCH_MEMBER_H_
#define CROUT_KERNELS_BATCH_MEMBER_H_

#include <algorithm>
#include <cstdint>

namespace crout {

// Where member i lies. A plain struct, the same on every device: a thread block learns all of its
// matrix by one read.
struct BatchMember {
  int64_t offset = 0;  // of element (0, 0) from the batch's first, in elements
  // Where what the batch has for each element of its diagonals (ipiv) begins for this member: the
  // sum of min(rows, cols) of those before it.
  int64_t first_diagonal = 0;
  int32_t rows = 0;  // 0 or more
  int32_t cols = 0;
  int32_t ld = 1;  // of the columns, in elements: at least max(1, rows)

  constexpr int32_t diagonal() const { return std::min(rows, cols); }
};

}  // namespace crout

#endif  // CROUT_KERNELS_BATCH_MEMBER_H_
