// SPDX-License-Identifier: Apache-2.0

// Parses data lines of a Matrix Market file, one segment at a time.
#ifndef CROUT_KERNELS_IO_MATRIX_MARKET_ENTRIES_H_
#define CROUT_KERNELS_IO_MATRIX_MARKET_ENTRIES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/io/matrix_market.h"
#include "kernels/io/sparse_matrix.h"

namespace crout {

enum class LineFault : uint8_t {
  kNone,
  kRow,         // not an integer from 1 to rows
  kColumn,      // not an integer from 1 to columns
  kValue,       // not a number
  kNotInteger,  // a number, but not an integer, under `integer`
  kNotFinite,   // nan, inf, or too large for float64
  kImaginary,   // no number after the real part under `complex`
  kDiagonal,    // a diagonal entry under `skew-symmetric`
  kNotReal,     // a diagonal entry with an imaginary part under `hermitian`
  kTrailing,    // text after the entry
  kTooLong,     // longer than kMaxMatrixMarketLine
};

// The first faulty line of a segment.
struct FaultyLine {
  LineFault fault = LineFault::kNone;
  int64_t line = 0;  // Within the segment, 0-based.
  int64_t row = 0;   // 1-based, as in the line. 0: unknown, or an `array`.
  int64_t column = 0;
  std::string token;  // The faulty token, quoted; empty if the line ends too early.
};

struct ParsedSegment {
  std::string text;                  // Whole lines, kept so that they can be counted later.
  std::vector<MatrixEntry> entries;  // `coordinate`
  std::vector<double> values;        // `array`
  std::vector<double> imaginary;     // `complex`: one per entry or value
  int64_t lines = 0;                 // Newlines in `text`.
  std::optional<FaultyLine> faulty;  // Nothing after this line was parsed.

  int64_t count() const { return static_cast<int64_t>(entries.size() + values.size()); }
  // Bytes held.
  size_t bytes() const {
    return text.capacity() + entries.capacity() * sizeof(MatrixEntry) +
           (values.capacity() + imaginary.capacity()) * sizeof(double);
  }
};

// Counts the lines of `text`. The last line may lack its newline.
ParsedSegment CountLines(std::string text);

// Upper bound on the bytes that ParseSegment holds in addition to the text.
size_t ParseBytes(const MatrixMarketHeader& header, const ParsedSegment& segment);

// Parses a result of CountLines(). Depends only on its arguments, so segments can be parsed in
// parallel. An `array` segment does not contain its position, so the caller checks for kNotReal.
// fast_float reads numbers with correct rounding; values too small for float64 become zero.
void ParseSegment(const MatrixMarketHeader& header, ParsedSegment* segment);

// Returns the 0-based line in `text` of entry number `index`, where entries are the lines that are
// neither blank nor comments, counted from 0.
int64_t LineOfEntry(const std::string& text, int64_t index);

}  // namespace crout

#endif  // CROUT_KERNELS_IO_MATRIX_MARKET_ENTRIES_H_
