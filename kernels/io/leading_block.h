// SPDX-License-Identifier: Apache-2.0

// Properties of a leading block of a sparse matrix that need no factorization.
#ifndef CROUT_KERNELS_IO_LEADING_BLOCK_H_
#define CROUT_KERNELS_IO_LEADING_BLOCK_H_

#include <cstdint>
#include <optional>

#include "kernels/dtype.h"
#include "kernels/io/sparse_matrix.h"
#include "kernels/sparse_view.h"

namespace crout {

struct LeadingBlock {
  // First row and column, 0-based, without nonzero entries. If there is one, the block is singular.
  std::optional<int64_t> empty_row;
  std::optional<int64_t> empty_column;
  double norm_one = 0;
  double norm_inf = 0;  // +Inf if a value overflows the type
};

// Inspects the leading n x n block, 0 <= n <= rows, columns, with values rounded to `dtype`.
// `dtype` is complex if the matrix is. Takes 8 n bytes.
LeadingBlock InspectLeadingBlock(const SparseMatrix& matrix, int64_t n, DType dtype);
// The same for a matrix whose values already have their type.
LeadingBlock InspectLeadingBlock(const AnySparse& matrix, int64_t n);

}  // namespace crout

#endif  // CROUT_KERNELS_IO_LEADING_BLOCK_H_
