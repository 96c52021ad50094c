// The banner, the comments after it and the size line of a Matrix Market file.
#ifndef CROUT_KERNELS_IO_MATRIX_MARKET_HEADER_H_
#define CROUT_KERNELS_IO_MATRIX_MARKET_HEADER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/io/matrix_market.h"

namespace crout {

// Takes a header line by line. Every error names its line. Not thread-safe.
class MatrixMarketHeaderParser {
 public:
  explicit MatrixMarketHeaderParser(const MatrixMarketLimits& limits) : limits_(limits) {}

  // The next line without its newline, while !done(). After an error nothing more may be added.
  // RESOURCE_EXHAUSTED: PeakBytes() beyond the limit. INVALID_ARGUMENT: all else.
  absl::Status AddLine(absl::string_view line);

  // The size line was read: header() is whole.
  bool done() const { return done_; }
  const MatrixMarketHeader& header() const { return header_; }
  int64_t lines() const { return lines_; }

  // What is missing when the text ends although !done().
  absl::Status MissingLine() const;

 private:
  absl::Status ParseBanner(absl::string_view line);
  // That the words of the banner go together.
  absl::Status CheckBanner() const;
  absl::Status ParseSize(absl::string_view line);
  absl::Status CheckSize();
  absl::Status Invalid(absl::string_view what) const;

  const MatrixMarketLimits limits_;
  MatrixMarketHeader header_;
  int64_t lines_ = 0;
  bool done_ = false;
};

// At most the first 32 bytes of a token, in quotes and escaped: what errors quote of a file.
std::string QuoteToken(absl::string_view token);

}  // namespace crout

#endif  // CROUT_KERNELS_IO_MATRIX_MARKET_HEADER_H_
