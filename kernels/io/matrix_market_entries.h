// The lines after the size line of a Matrix Market file, some of them at a time.
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
  kNotInteger,  // a number, but no integer, under `integer`
  kNotFinite,   // nan, inf, or too large for float64
  kImaginary,   // no number follows the real part under `complex`
  kDiagonal,    // a diagonal entry under `skew-symmetric`
  kNotReal,     // a diagonal entry with an imaginary part under `hermitian`
  kTrailing,    // something after the entry
  kTooLong,     // longer than kMaxMatrixMarketLine
};

// The first line of a segment that is no entry, comment or blank.
struct FaultyLine {
  LineFault fault = LineFault::kNone;
  int64_t line = 0;  // In the segment, 0-based.
  int64_t row = 0;   // As the line gives it, 1-based. 0: not known; `array` gives none.
  int64_t column = 0;
  std::string token;  // What is wrong, quoted; empty where the line ends too early.
};

struct ParsedSegment {
  std::string text;                  // Whole lines, kept so that they can be counted later.
  std::vector<MatrixEntry> entries;  // `coordinate`
  std::vector<double> values;        // `array`
  std::vector<double> imaginary;     // `complex`: of each of the entries or values
  int64_t lines = 0;                 // Newlines in `text`.
  std::optional<FaultyLine> faulty;  // What follows it was not parsed.

  int64_t count() const { return static_cast<int64_t>(entries.size() + values.size()); }
  // Bytes held.
  size_t bytes() const {
    return text.capacity() + entries.capacity() * sizeof(MatrixEntry) +
           (values.capacity() + imaginary.capacity()) * sizeof(double);
  }
};

// Counts the lines of `text`, of which the last may lack its newline.
ParsedSegment CountLines(std::string text);

// The bytes that ParseSegment will hold at most besides the text.
size_t ParseBytes(const MatrixMarketHeader& header, const ParsedSegment& segment);

// Parses what CountLines() returned. Reads no state but its arguments: segments parse in parallel.
// Of an `array` it does not know the diagonal, and leaves kNotReal to its caller.
// Numbers are read by fast_float, correctly rounded; a value too small for float64 becomes zero.
void ParseSegment(const MatrixMarketHeader& header, ParsedSegment* segment);

// 0-based line in `text` of its entry number `index`, counting lines that are not blank and no
// comment from 0.
int64_t LineOfEntry(const std::string& text, int64_t index);

}  // namespace crout

#endif  // CROUT_KERNELS_IO_MATRIX_MARKET_ENTRIES_H_
