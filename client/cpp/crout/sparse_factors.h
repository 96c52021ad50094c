// SPDX-License-Identifier: Apache-2.0

// L and U of a downloaded sparse factor.
#ifndef CROUT_CROUT_SPARSE_FACTORS_H_
#define CROUT_CROUT_SPARSE_FACTORS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "crout/results.h"
#include "crout/types.h"

namespace crout {
inline namespace api {

// A square matrix in compressed rows. Indices are 0-based. Row i has the entries starts[i] to
// starts[i + 1] - 1, in ascending order of their columns.
struct CompressedRows {
  int64_t n = 0;  // order
  Dtype dtype = Dtype::kFloat64;
  std::vector<int64_t> starts;         // n + 1 elements
  std::vector<int32_t> columns;        // column of each entry
  std::vector<std::byte> value_bytes;  // value of each entry, of type dtype

  int64_t entries() const { return static_cast<int64_t>(columns.size()); }
  // Value of entry e, 0 <= e < entries(). T: the type dtype.
  template <class T>
  T value(int64_t e) const {
    T value;
    std::memcpy(&value, value_bytes.data() + static_cast<size_t>(e) * sizeof(T), sizeof(T));
    return value;
  }
};

// L U = diag(r)[p, :] A[p, q] diag(c)[q, q], except for perturbed pivots
// (SparseInfo.perturbed_pivots). r is row_scales, c is col_scales, p is row_permutation and q is
// column_permutation: row i of L U is row p[i] of A, and column j is column q[j] of A.
struct SparseFactors {
  FactorDescription factor;              // the version that was sent
  CompressedRows lower;                  // strictly lower part; the unit diagonal is not stored
  CompressedRows upper;                  // upper part with the diagonal
  std::vector<int32_t> row_permutation;  // n elements, 0-based
  std::vector<int32_t> column_permutation;
  // In the order of A's rows and columns; empty if A was not scaled.
  std::vector<double> row_scales;
  std::vector<double> col_scales;
};

}  // namespace api
}  // namespace crout

#endif  // CROUT_CROUT_SPARSE_FACTORS_H_
