#include "kernels/io/leading_block.h"

#include <algorithm>
#include <vector>

#include "kernels/scalar.h"

namespace crout {

namespace {

template <class T>
LeadingBlock Inspect(const SparseMatrix& matrix, int64_t n) {
  LeadingBlock block;
  std::vector<double> row_sums(n);
  for (int64_t j = 0; j < n; ++j) {
    double column_sum = 0;
    // The rows of a column ascend: the first one outside the block ends it.
    for (int64_t i = matrix.column_start[j]; i < matrix.column_start[j + 1] && matrix.row[i] < n;
         ++i) {
      const double modulus = Modulus(ConvertTo<T>(matrix.Value<WideType<T>>(i)));
      column_sum += modulus;
      row_sums[matrix.row[i]] += modulus;
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
  return DispatchDType(dtype,
                       [&](auto tag) { return Inspect<typename decltype(tag)::type>(matrix, n); });
}

}  // namespace crout
