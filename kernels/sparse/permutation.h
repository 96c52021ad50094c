// SPDX-License-Identifier: Apache-2.0

// Permutations of the rows and columns of sparse matrices.
#ifndef CROUT_KERNELS_SPARSE_PERMUTATION_H_
#define CROUT_KERNELS_SPARSE_PERMUTATION_H_

#include <cstdint>
#include <span>
#include <vector>

namespace crout {

// True if the permutation that takes rows[k] to columns[k] is odd. It gives the sign of the
// determinant. Both arguments hold 0 to n - 1.
inline bool IsOdd(std::span<const int32_t> rows, std::span<const int32_t> columns) {
  std::vector<int32_t> column_of_row(rows.size());
  for (size_t k = 0; k < rows.size(); ++k) column_of_row[rows[k]] = columns[k];
  std::vector<bool> seen(rows.size());
  bool odd = false;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (seen[i]) continue;
    int64_t length = 0;
    for (auto k = static_cast<int32_t>(i); !seen[k]; k = column_of_row[k]) {
      seen[k] = true;
      ++length;
    }
    if (length % 2 == 0) odd = !odd;
  }
  return odd;
}

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_PERMUTATION_H_
