// Sparse matrices that croutctl itself analyses, or sends the values of.
#ifndef CROUT_CLIENT_CLI_PACKED_MATRIX_H_
#define CROUT_CLIENT_CLI_PACKED_MATRIX_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/array.h"
#include "client/cli/local_matrix.h"
#include "kernels/sparse/pattern_text.h"
#include "kernels/sparse_view.h"

namespace crout::cli {

// A matrix as the analysis takes it, with its memory.
class PackedMatrix {
 public:
  // complex128 where a number has an imaginary part that is not 0, else float64.
  // What is at one place is added up; zeros of a coordinate text stay entries, of an array they are
  // none. INVALID_ARGUMENT for one that is not square, or too large for the indices.
  static absl::StatusOr<PackedMatrix> Pack(const LocalMatrix& matrix);

  AnySparse view() const { return {block_.data(), dtype_, n_, nonzeros_}; }
  // The values in its order, by columns, and by rows within: a vector.
  Array Values() const;
  // The digest of its pattern, as SparseInfo.pattern_digest.
  std::string PatternDigest() const { return PatternText(crout::PatternDigest(view())); }

 private:
  PackedMatrix() = default;

  std::vector<std::byte> block_;
  DType dtype_ = DType::kFloat64;
  int64_t n_ = 0;
  int64_t nonzeros_ = 0;
};

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_PACKED_MATRIX_H_
