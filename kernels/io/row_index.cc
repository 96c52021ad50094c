#include "kernels/io/row_index.h"

#include <numeric>

namespace crout {

RowIndex IndexRows(const SparseMatrix& matrix) {
  RowIndex index;
  index.row_start.resize(matrix.rows + 1);
  index.column.resize(matrix.nonzeros());
  index.position.resize(matrix.nonzeros());
  // Of row i, until its entries have their places, the start is kept one element further.
  std::vector<int64_t>& start = index.row_start;
  for (const int32_t row : matrix.row) {
    if (row + 2 <= matrix.rows) ++start[row + 2];
  }
  std::partial_sum(start.begin(), start.end(), start.begin());
  for (int64_t j = 0; j < matrix.columns; ++j) {
    for (int64_t e = matrix.column_start[j]; e < matrix.column_start[j + 1]; ++e) {
      const int64_t place = start[matrix.row[e] + 1]++;
      index.column[place] = static_cast<int32_t>(j);
      index.position[place] = static_cast<int32_t>(e);
    }
  }
  return index;
}

}  // namespace crout
