// What can be said of a leading block of a sparse matrix without factoring it.
#ifndef CROUT_KERNELS_IO_LEADING_BLOCK_H_
#define CROUT_KERNELS_IO_LEADING_BLOCK_H_

#include <cstdint>
#include <optional>

#include "kernels/dtype.h"
#include "kernels/io/sparse_matrix.h"
#include "kernels/sparse_view.h"

namespace crout {

struct LeadingBlock {
  // The first row and column, 0-based, that have no entry but zeros: with one, the block is
  // singular.
  std::optional<int64_t> empty_row;
  std::optional<int64_t> empty_column;
  double norm_one = 0;
  double norm_inf = 0;  // +Inf where a value overflows the type
};

// Of the n x n block, 0 <= n <= rows, columns, with its values rounded to `dtype`, which
// is complex where the matrix is. Takes 8 n bytes.
LeadingBlock InspectLeadingBlock(const SparseMatrix& matrix, int64_t n, DType dtype);
// Of one whose values are of that type already.
LeadingBlock InspectLeadingBlock(const AnySparse& matrix, int64_t n);

}  // namespace crout

#endif  // CROUT_KERNELS_IO_LEADING_BLOCK_H_
