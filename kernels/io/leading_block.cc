#include "kernels/io/leading_block.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace crout {

LeadingBlock InspectLeadingBlock(const SparseMatrix& matrix, int64_t n, bool as_float32) {
  LeadingBlock block;
  std::vector<double> row_sums(n);
  for (int64_t j = 0; j < n; ++j) {
    double column_sum = 0;
    // Rows ascend.
    for (int64_t i = matrix.column_start[j]; i < matrix.column_start[j + 1] && matrix.row[i] < n;
         ++i) {
      const double value = as_float32 ? static_cast<float>(matrix.value[i]) : matrix.value[i];
      column_sum += std::abs(value);
      row_sums[matrix.row[i]] += std::abs(value);
    }
    if (column_sum == 0 && !block.empty_column) block.empty_column = j;
    block.norm_one = std::max(block.norm_one, column_sum);
  }
  for (int64_t i = 0; i < n; ++i) {
    if (row_sums[i] == 0 && !block.empty_row) block.empty_row = i;
    block.norm_inf = std::max(block.norm_inf, row_sums[i]);
  }
  return block;
}

}  // namespace crout
