// SPDX-License-Identifier: Apache-2.0

// Parser for the banner, comments and size line of a Matrix Market file.
#ifndef CROUT_KERNELS_IO_MATRIX_MARKET_HEADER_H_
#define CROUT_KERNELS_IO_MATRIX_MARKET_HEADER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/io/matrix_market.h"

namespace crout {

// Parses a header line by line. Every error names its line. Not thread-safe.
class MatrixMarketHeaderParser {
 public:
  explicit MatrixMarketHeaderParser(const MatrixMarketLimits& limits) : limits_(limits) {}

  // Adds the next line, without its newline. Call only while !done() and after no error.
  // RESOURCE_EXHAUSTED: PeakBytes() exceeds the limit. INVALID_ARGUMENT: all other errors.
  absl::Status AddLine(absl::string_view line);

  // True once the size line was read and header() is complete.
  bool done() const { return done_; }
  const MatrixMarketHeader& header() const { return header_; }
  int64_t lines() const { return lines_; }

  // Error for a text that ends while !done().
  absl::Status MissingLine() const;

 private:
  absl::Status ParseBanner(absl::string_view line);
  // Checks that the words of the banner are compatible.
  absl::Status CheckBanner() const;
  absl::Status ParseSize(absl::string_view line);
  absl::Status CheckSize();
  absl::Status Invalid(absl::string_view what) const;

  const MatrixMarketLimits limits_;
  MatrixMarketHeader header_;
  int64_t lines_ = 0;
  bool done_ = false;
};

// Quotes and escapes a token for an error message, at most its first 32 bytes.
std::string QuoteToken(absl::string_view token);

}  // namespace crout

#endif  // CROUT_KERNELS_IO_MATRIX_MARKET_HEADER_H_
