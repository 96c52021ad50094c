// SPDX-License-Identifier: Apache-2.0

// Splits Matrix Market text, which arrives in pieces of any size, into a header and segments of
// whole lines.
#ifndef CROUT_KERNELS_IO_MATRIX_MARKET_SPLITTER_H_
#define CROUT_KERNELS_IO_MATRIX_MARKET_SPLITTER_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "kernels/io/matrix_market_header.h"

namespace crout {

// Text can be held twice, and a third time while it is copied.
inline constexpr size_t kSplitterGrowth = 3;

// Not thread-safe. Errors are those of the header parser and are final.
class MatrixMarketSplitter {
 public:
  explicit MatrixMarketSplitter(const MatrixMarketLimits& limits)
      : segment_bytes_(std::max<size_t>(1, limits.segment_bytes)), header_(limits) {}

  // Copies `text` and adds completed segments to *segments. A segment ends with a line, unless a
  // line is longer than kMaxMatrixMarketLine: then the segment ends inside that line. Holds at most
  // kSplitterGrowth additional bytes for each byte of `text` and of size(), also temporarily.
  absl::Status Append(std::string_view text, std::vector<std::string>* segments);

  // Ends the text. Adds the rest, whose last line may lack its newline.
  absl::Status Finish(std::vector<std::string>* segments);

  // Ends the text after an error. Adds the complete lines, so that their own errors are found for
  // any split of the text.
  void EndAfterError(std::vector<std::string>* segments);

  // True once the size line was read. header_lines() is the number of lines up to it.
  bool has_header() const { return header_.done(); }
  const MatrixMarketHeader& header() const { return header_.header(); }
  int64_t header_lines() const { return header_.lines(); }

  // Bytes of text kept, and bytes of memory held for them.
  size_t size() const { return partial_.size(); }
  size_t bytes() const { return partial_.capacity(); }

 private:
  absl::Status TakeHeaderLines(std::string_view* text);
  void TakeBody(std::string_view text, std::vector<std::string>* segments);
  // Makes room for `bytes` more bytes of a segment.
  void Grow(size_t bytes);
  // Adds the whole lines of a segment, or a line that is too long, and keeps the rest.
  void Cut(std::vector<std::string>* segments);

  const size_t segment_bytes_;
  MatrixMarketHeaderParser header_;
  std::string partial_;     // An incomplete header line, later an incomplete segment.
  size_t whole_lines_ = 0;  // Bytes of the segment up to its last newline.
};

}  // namespace crout

#endif  // CROUT_KERNELS_IO_MATRIX_MARKET_SPLITTER_H_
