// SPDX-License-Identifier: Apache-2.0

// Matrices for computations in croutctl itself.
#ifndef CROUT_CLIENT_CLI_INPUT_LOCAL_MATRIX_H_
#define CROUT_CLIENT_CLI_INPUT_LOCAL_MATRIX_H_

#include <complex>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/formats/array.h"

namespace crout::cli {

// One entry; duplicates are summed.
struct Entry {
  int64_t row;
  int64_t col;
  std::complex<double> value;
};

// Coordinates of a sparse matrix.
struct Coordinates {
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<Entry> entries;
};

class LocalMatrix {
 public:
  // Loads any file that croutctl reads (matrix_input.h); of Matrix Market all fields and
  // symmetries. FileError, or INVALID_ARGUMENT for invalid contents. Memory grows with the entries,
  // not by the declared size.
  static absl::StatusOr<LocalMatrix> Load(const std::string& path);

  int64_t rows() const;
  int64_t cols() const;
  // A dense matrix had all its elements in the file, so that rows() and cols() are verified.
  const Array* dense() const { return std::get_if<Array>(&matrix_); }

  // Calls f(row, col, value) for every entry.
  template <class F>
  void ForEach(F f) const {
    if (const auto* sparse = std::get_if<Coordinates>(&matrix_)) {
      for (const Entry& entry : sparse->entries) f(entry.row, entry.col, entry.value);
      return;
    }
    const Array& array = std::get<Array>(matrix_);
    for (int64_t j = 0; j < array.cols; ++j) {
      for (int64_t i = 0; i < array.rows; ++i) f(i, j, array.At(i, j));
    }
  }

 private:
  explicit LocalMatrix(std::variant<Array, Coordinates> matrix) : matrix_(std::move(matrix)) {}

  std::variant<Array, Coordinates> matrix_;
};

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_INPUT_LOCAL_MATRIX_H_
