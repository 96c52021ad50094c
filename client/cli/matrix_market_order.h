// What a Matrix Market file says of itself.
#ifndef CROUT_CLIENT_CLI_MATRIX_MARKET_ORDER_H_
#define CROUT_CLIENT_CLI_MATRIX_MARKET_ORDER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace crout::cli {

// Reads no further than the size line of `path`, plain or gzip. INVALID_ARGUMENT where there is
// none.
absl::StatusOr<int64_t> MatrixMarketRows(const std::string& path);

// Whether the banner of `path`, plain or gzip, says `complex`. False where it cannot be read, and
// of pipes, which are read once.
bool MatrixMarketIsComplex(const std::string& path);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_MATRIX_MARKET_ORDER_H_
