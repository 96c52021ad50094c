// SPDX-License-Identifier: Apache-2.0

// The Matrix Market format, plain or gzip:
// https://math.nist.gov/MatrixMarket/formats.html
#ifndef CROUT_CLIENT_CLI_FORMATS_MATRIX_MARKET_H_
#define CROUT_CLIENT_CLI_FORMATS_MATRIX_MARKET_H_

#include <complex>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/formats/array.h"

namespace crout::cli {

// Returns the number of rows. Reads only to the size line. INVALID_ARGUMENT if there is none.
absl::StatusOr<int64_t> MatrixMarketRows(const std::string& path);

// Whether the banner has the field `complex`. False for a file that cannot be read, and for a pipe,
// which can be read only once.
bool MatrixMarketIsComplex(const std::string& path);

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

// Reads a file with all fields and symmetries: an array if it is general and dense, otherwise
// coordinates. FileError, or INVALID_ARGUMENT with the line. Memory grows with the entries, not
// with the declared size.
absl::StatusOr<std::variant<Array, Coordinates>> ReadMatrixMarket(const std::string& path);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_FORMATS_MATRIX_MARKET_H_
