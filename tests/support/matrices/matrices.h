// SPDX-License-Identifier: Apache-2.0

// Matrices from applications, shared by tests and benchmarks. Their directory is $CROUT_MATRICES,
// by default ../shared/matrices beside the source tree.
#ifndef CROUT_TESTS_SUPPORT_MATRICES_MATRICES_H_
#define CROUT_TESTS_SUPPORT_MATRICES_MATRICES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/support/matrices/gallery.h"
#include "tests/support/matrices/sparse_gallery.h"

namespace crout::testing {

// Returns nullopt if the directory has no index. Tests are then skipped with a message.
std::optional<std::string> MatricesDirectory();

// One line of INDEX.tsv.
struct RealMatrix {
  std::string file;      // relative to the directory
  int64_t n = 0;         // order
  int64_t nnz = 0;       // entries in the file
  std::string field;     // real, integer, pattern, complex
  std::string symmetry;  // general, symmetric, skew-symmetric
  double condition = 0;  // 1-norm estimate; Inf if singular, 0 if unknown
  std::string note;
};

// Reads the index, in its order. Returns no matrices without a directory.
std::vector<RealMatrix> RealMatrixIndex();

// The following functions read a Matrix Market file, gzipped or not, independently of the product's
// reader. The file must be valid. They return NOT_FOUND if the file cannot be opened,
// INVALID_ARGUMENT if the matrix is not square, UNIMPLEMENTED for another field or format, and
// DATA_LOSS if the file is truncated.

// Returns the dense n x n matrix of a coordinate or array file that is real, integer or pattern.
absl::StatusOr<HostMatrix> ReadRealMatrix(const RealMatrix& matrix);

// Returns the entries of a coordinate file, also a complex one, including duplicates and stored
// zeros; or the nonzeros of an array file that is not complex.
absl::StatusOr<std::vector<SparseEntry>> ReadSparseMatrix(const RealMatrix& matrix);

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_MATRICES_MATRICES_H_
