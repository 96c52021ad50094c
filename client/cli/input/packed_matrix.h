// SPDX-License-Identifier: Apache-2.0

// Sparse matrices that croutctl analyzes or whose values it sends.
#ifndef CROUT_CLIENT_CLI_INPUT_PACKED_MATRIX_H_
#define CROUT_CLIENT_CLI_INPUT_PACKED_MATRIX_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/formats/array.h"
#include "client/cli/input/local_matrix.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse_view.h"

namespace crout::cli {

// A matrix in the layout of the analysis, with its memory.
class PackedMatrix {
 public:
  // The type is complex128 if any imaginary part is not 0, otherwise float64. Duplicates are
  // summed. Zeros of a coordinate text are entries; zeros of an array are not. INVALID_ARGUMENT for
  // a matrix that is not square or too large for the indices.
  static absl::StatusOr<PackedMatrix> Pack(const LocalMatrix& matrix);

  AnySparse view() const { return {block_.data(), dtype_, n_, nonzeros_}; }
  // The values as a vector, ordered by column, and by row within a column.
  Array Values() const;
  // The digest of the pattern, as SparseInfo.pattern_digest.
  std::string PatternDigest() const { return PatternText(crout::PatternDigest(view())); }

 private:
  PackedMatrix() = default;

  std::vector<std::byte> block_;
  DType dtype_ = DType::kFloat64;
  int64_t n_ = 0;
  int64_t nonzeros_ = 0;
};

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_INPUT_PACKED_MATRIX_H_
