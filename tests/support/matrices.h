// SPDX-License-Identifier: Apache-2.0

// The shared real matrices: $CROUT_MATRICES, or ../shared/matrices beside the source tree.
#ifndef CROUT_TESTS_SUPPORT_MATRICES_H_
#define CROUT_TESTS_SUPPORT_MATRICES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/support/gallery.h"
#include "tests/support/sparse_gallery.h"

namespace crout::testing {

// The directory of the matrices, or nullopt if it does not exist. Tests are then skipped with a
// message.
std::optional<std::string> MatricesDirectory();

// One line of INDEX.tsv.
struct RealMatrix {
  std::string file;  // relative to the directory
  int64_t n = 0;
  int64_t nnz = 0;
  std::string field;     // real, integer, pattern, complex
  std::string symmetry;  // general, symmetric, skew-symmetric
  double condition = 0;  // 1-norm estimate; Inf if singular, 0 if unknown
  std::string note;
};

// Reads the index in file order. Empty without a directory.
std::vector<RealMatrix> RealMatrixIndex();

// Reads a Matrix Market file, gzipped or not, into a dense matrix, independently of the product's
// reader. Supports square matrices of trusted files: coordinate or array; real, integer or pattern.
absl::StatusOr<HostMatrix> ReadRealMatrix(const RealMatrix& matrix);

// Reads the entries of a real or complex matrix without a dense form. Includes duplicates and
// stored zeros of a coordinate file, and the nonzeros of an array.
absl::StatusOr<std::vector<SparseEntry>> ReadSparseMatrix(const RealMatrix& matrix);

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_MATRICES_H_
