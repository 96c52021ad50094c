// SPDX-License-Identifier: Apache-2.0

// Header data of Matrix Market files.
#ifndef CROUT_CLIENT_CLI_FORMATS_MATRIX_MARKET_H_
#define CROUT_CLIENT_CLI_FORMATS_MATRIX_MARKET_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace crout::cli {

// Number of rows of `path`, plain or gzip. Reads only to the size line. INVALID_ARGUMENT if there
// is none.
absl::StatusOr<int64_t> MatrixMarketRows(const std::string& path);

// Whether the banner of `path`, plain or gzip, has the field `complex`. False if it cannot be read,
// and for pipes, which can be read only once.
bool MatrixMarketIsComplex(const std::string& path);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_FORMATS_MATRIX_MARKET_H_
