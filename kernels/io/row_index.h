// Where the entries of each row of a sparse matrix are.
#ifndef CROUT_KERNELS_IO_ROW_INDEX_H_
#define CROUT_KERNELS_IO_ROW_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/io/sparse_matrix.h"

namespace crout {

// Row i has the entries [row_start[i], row_start[i + 1]) of `column` and `position`. 0-based;
// columns ascend strictly within a row. position: of the entry in SparseMatrix::value.
struct RowIndex {
  std::vector<int64_t> row_start;  // rows + 1
  std::vector<int32_t> column;
  std::vector<int32_t> position;
};

// What IndexRows makes of such a matrix, and takes on the way.
inline size_t RowIndexBytes(const SparseMatrix& matrix) {
  return (matrix.rows + 1) * sizeof(int64_t) + matrix.nonzeros() * 2 * sizeof(int32_t);
}

// Of a matrix with fewer than 2^31 entries.
RowIndex IndexRows(const SparseMatrix& matrix);

}  // namespace crout

#endif  // CROUT_KERNELS_IO_ROW_INDEX_H_
