// SPDX-License-Identifier: Apache-2.0

// L and U of a downloaded sparse factor.
#ifndef CROUT_CROUT_SPARSE_FACTORS_H_
#define CROUT_CROUT_SPARSE_FACTORS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "crout/v1/factor.pb.h"
#include "crout/v1/matrix.pb.h"

namespace crout::client {

// A square matrix in compressed rows. The entries of row i are [starts[i], starts[i + 1]), with
// ascending columns. 0-based.
struct CompressedRows {
  int64_t n = 0;
  v1::Dtype dtype = v1::DTYPE_FLOAT64;
  std::vector<int64_t> starts;  // n + 1
  std::vector<int32_t> columns;
  std::vector<std::byte> value_bytes;  // of type dtype, one a column index

  int64_t entries() const { return static_cast<int64_t>(columns.size()); }
  // Value of entry e. T: the type dtype.
  template <class T>
  T value(int64_t e) const {
    T value;
    std::memcpy(&value, value_bytes.data() + static_cast<size_t>(e) * sizeof(T), sizeof(T));
    return value;
  }
};

// L U = diag(row_scales)[p, :] A[p, q] diag(col_scales)[q, q], where p is row_permutation and q is
// column_permutation, except for perturbed pivots (SparseInfo.perturbed_pivots).
struct SparseFactors {
  v1::Factor factor;                     // the version that was sent
  CompressedRows lower;                  // strictly lower part; the unit diagonal is not stored
  CompressedRows upper;                  // upper part with the diagonal
  std::vector<int32_t> row_permutation;  // 0-based
  std::vector<int32_t> column_permutation;
  // In the order of A's rows and columns; empty if A was not scaled.
  std::vector<double> row_scales;
  std::vector<double> col_scales;
};

}  // namespace crout::client

#endif  // CROUT_CROUT_SPARSE_FACTORS_H_
