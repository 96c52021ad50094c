// L and U of a sparse factor, as a download has them.
#ifndef CROUT_CROUT_SPARSE_FACTORS_H_
#define CROUT_CROUT_SPARSE_FACTORS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "crout/v1/factor.pb.h"
#include "crout/v1/matrix.pb.h"

namespace crout::client {

// A square matrix of which the entries that are stored are told row by row: those of row i are
// [starts[i], starts[i + 1]), at columns that ascend. 0-based.
struct CompressedRows {
  int64_t n = 0;
  v1::Dtype dtype = v1::DTYPE_FLOAT64;
  std::vector<int64_t> starts;  // n + 1
  std::vector<int32_t> columns;
  std::vector<std::byte> value_bytes;  // of type dtype, one for each column

  int64_t entries() const { return static_cast<int64_t>(columns.size()); }
  // The value of entry e. T: of dtype.
  template <class T>
  T value(int64_t e) const {
    T value;
    std::memcpy(&value, value_bytes.data() + static_cast<size_t>(e) * sizeof(T), sizeof(T));
    return value;
  }
};

// L U = diag(row_scales)[p, :] A[p, q] diag(col_scales)[q, q], with p the row_permutation and q the
// column_permutation, but for pivots that were made larger (SparseInfo.perturbed_pivots).
struct SparseFactors {
  v1::Factor factor;                     // the version that was sent
  CompressedRows lower;                  // below the diagonal, which is 1
  CompressedRows upper;                  // the diagonal and above
  std::vector<int32_t> row_permutation;  // from 0, as all here
  std::vector<int32_t> column_permutation;
  std::vector<double> row_scales;  // by A's rows and columns; empty where nothing was scaled
  std::vector<double> col_scales;
};

}  // namespace crout::client

#endif  // CROUT_CROUT_SPARSE_FACTORS_H_
