// Cuts Matrix Market text that arrives in pieces of any size into a header and segments of whole
// lines.
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

// Text may be held twice over, and a third time while it moves.
inline constexpr size_t kSplitterGrowth = 3;

// Not thread-safe. Errors are the header's, and final.
class MatrixMarketSplitter {
 public:
  explicit MatrixMarketSplitter(const MatrixMarketLimits& limits)
      : segment_bytes_(std::max<size_t>(1, limits.segment_bytes)), header_(limits) {}

  // Copies `text` and adds to *segments those that became full. A segment ends with a line,
  // except where a line is longer than kMaxMatrixMarketLine: its start is a segment then.
  // On the way and at the end at most kSplitterGrowth bytes are held, for each byte of `text` and
  // of size(), besides those held before.
  absl::Status Append(std::string_view text, std::vector<std::string>* segments);

  // The end of the text: adds what is left, whose last line may lack its newline.
  absl::Status Finish(std::vector<std::string>* segments);

  // The text breaks off in error: adds the lines that are whole, so that what is wrong with them is
  // found however the text was cut.
  void BreakOff(std::vector<std::string>* segments);

  // The size line was read; `lines()` were, up to there.
  bool has_header() const { return header_.done(); }
  const MatrixMarketHeader& header() const { return header_.header(); }
  int64_t header_lines() const { return header_.lines(); }

  // Bytes of text kept, and bytes held for them.
  size_t size() const { return partial_.size(); }
  size_t bytes() const { return partial_.capacity(); }

 private:
  absl::Status TakeHeaderLines(std::string_view* text);
  void TakeBody(std::string_view text, std::vector<std::string>* segments);
  // Makes room for `bytes` more of a segment.
  void Grow(size_t bytes);
  // Adds the whole lines of a segment, or a line that is too long, and keeps the rest.
  void Cut(std::vector<std::string>* segments);

  const size_t segment_bytes_;
  MatrixMarketHeaderParser header_;
  std::string partial_;     // A header line, then a segment, of which more is to come.
  size_t whole_lines_ = 0;  // Bytes of the segment up to its last newline.
};

}  // namespace crout

#endif  // CROUT_KERNELS_IO_MATRIX_MARKET_SPLITTER_H_
