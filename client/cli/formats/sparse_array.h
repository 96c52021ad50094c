// SPDX-License-Identifier: Apache-2.0

// Sparse matrices in memory.
#ifndef CROUT_CLIENT_CLI_FORMATS_SPARSE_ARRAY_H_
#define CROUT_CLIENT_CLI_FORMATS_SPARSE_ARRAY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/formats/array.h"
#include "crout/matrix_source.h"
#include "crout/v1/matrix.pb.h"

namespace crout::cli {

// Entry k is element k of `values` at (row[k], col[k]), 0-based and within rows x cols; duplicates
// are summed.
struct SparseArray {
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<int32_t> row;
  std::vector<int32_t> col;
  Array values;  // a column

  // Source of the matrix; refers to this object.
  client::MatrixSource Source() const;
  // SeriesResult.entry_digest of this matrix when a series sends it by Source().
  std::string EntryDigest() const;
  // Converts to another type, as Array::As.
  absl::StatusOr<SparseArray> As(v1::Dtype wanted) &&;
};

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_FORMATS_SPARSE_ARRAY_H_
