// SPDX-License-Identifier: Apache-2.0

#include "kernels/io/leading_block.h"

#include <algorithm>
#include <vector>

#include "kernels/scalar.h"

namespace crout {

namespace {

// modulus(e) is the modulus of entry e.
template <class Modulus>
LeadingBlock Inspect(const int64_t* column_start, const int32_t* row, int64_t n,
                     const Modulus& modulus) {
  LeadingBlock block;
  std::vector<double> row_sums(n);
  for (int64_t j = 0; j < n; ++j) {
    double column_sum = 0;
    // Rows are ascending within a column: the first row outside the block ends the column.
    for (int64_t e = column_start[j]; e < column_start[j + 1] && row[e] < n; ++e) {
      const double size = modulus(e);
      column_sum += size;
      row_sums[row[e]] += size;
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

}  // namespace

LeadingBlock InspectLeadingBlock(const SparseMatrix& matrix, int64_t n, DType dtype) {
  return DispatchDType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return Inspect(matrix.column_start.data(), matrix.row.data(), n,
                   [&](int64_t e) { return Modulus(ConvertTo<T>(matrix.Value<WideType<T>>(e))); });
  });
}

LeadingBlock InspectLeadingBlock(const AnySparse& matrix, int64_t n) {
  return DispatchDType(matrix.dtype, [&](auto tag) {
    const auto view = matrix.As<typename decltype(tag)::type>();
    return Inspect(view.column_start, view.row, n,
                   [&](int64_t e) { return Modulus(view.value[e]); });
  });
}

}  // namespace crout
