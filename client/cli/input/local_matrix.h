// SPDX-License-Identifier: Apache-2.0

// Matrices for computations in croutctl itself.
#ifndef CROUT_CLIENT_CLI_INPUT_LOCAL_MATRIX_H_
#define CROUT_CLIENT_CLI_INPUT_LOCAL_MATRIX_H_

#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/formats/array.h"
#include "client/cli/formats/matrix_market.h"

namespace crout::cli {

class LocalMatrix {
 public:
  // Loads any file that croutctl reads (matrix_input.h). FileError, or INVALID_ARGUMENT for invalid
  // contents. Memory grows with the entries, not with the declared size.
  static absl::StatusOr<LocalMatrix> Load(const std::string& path);

  int64_t rows() const;
  int64_t cols() const;
  // The matrix if it is dense, otherwise null. All elements of a dense matrix were in the file, so
  // rows() and cols() are verified.
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

// Reads a dense matrix, such as a right-hand side or an initial guess, in column-major order from
// any file that croutctl reads. The server accepts no text for the right-hand sides of a series, so
// Matrix Market is parsed here. `dtype` unspecified selects the type of the file. FileError, or
// INVALID_ARGUMENT for invalid contents and for sparse matrices. `deadline`: see OpenInput.
absl::StatusOr<Array> ReadRhs(const std::string& path, std::optional<Dtype> dtype,
                              absl::Time deadline = absl::InfiniteFuture());

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_INPUT_LOCAL_MATRIX_H_
