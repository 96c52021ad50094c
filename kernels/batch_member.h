// SPDX-License-Identifier: Apache-2.0

// Location of one member of an irregular batch. C++17, because kernels include it.
#ifndef CROUT_KERNELS_BATCH_MEMBER_H_
#define CROUT_KERNELS_BATCH_MEMBER_H_

#include <algorithm>
#include <cstdint>

namespace crout {

// Location and shape of member i. A plain struct with the same layout on every device, so that a
// thread block loads its member's description with one read.
struct BatchMember {
  int64_t offset = 0;  // element (0, 0), relative to the start of the batch, in elements
  // Index of this member's first element in per-diagonal arrays such as ipiv: the sum of min(rows,
  // cols) over the preceding members.
  int64_t first_diagonal = 0;
  int32_t rows = 0;  // >= 0
  int32_t cols = 0;
  int32_t ld = 1;  // leading dimension, in elements; >= max(1, rows)

  constexpr int32_t diagonal() const { return std::min(rows, cols); }
};

}  // namespace crout

#endif  // CROUT_KERNELS_BATCH_MEMBER_H_
