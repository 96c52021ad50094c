// The Matrix Market exchange format: what a file's header says, and what a reader accepts.
//
// Format: Boisvert, Pozo, Remington, "The Matrix Market Exchange Formats: Initial Design",
// NISTIR 5935, 1996. Where the paper is silent the reader does as SciPy's mmread does.
#ifndef CROUT_KERNELS_IO_MATRIX_MARKET_H_
#define CROUT_KERNELS_IO_MATRIX_MARKET_H_

#include <cstddef>
#include <cstdint>

namespace crout {

struct MatrixMarketHeader {
  enum class Field : uint8_t { kReal, kInteger, kPattern, kComplex };
  enum class Symmetry : uint8_t { kGeneral, kSymmetric, kSkewSymmetric, kHermitian };

  // `coordinate`: one entry a line, "row column value", 1-based. `array`: one value a line, column
  // by column; symmetric and hermitian: the lower triangle alone, skew-symmetric: without the
  // diagonal. A value of `complex` is two numbers: the real part, then the imaginary one.
  bool coordinate = true;
  Field field = Field::kReal;
  Symmetry symmetry = Symmetry::kGeneral;
  int64_t rows = 0;
  int64_t columns = 0;
  // Lines with data that the file must hold. A claim of the sender's until the file was read.
  int64_t entries = 0;

  bool complex() const { return field == Field::kComplex; }

  friend bool operator==(const MatrixMarketHeader&, const MatrixMarketHeader&) = default;
};

struct MatrixMarketLimits {
  // A larger dimension is INVALID_ARGUMENT. Values above 2^31 - 1 mean that. The sparse form
  // takes 16 bytes for every declared column, the only memory that a size line alone can claim.
  int64_t max_rows = int64_t{1} << 20;
  int64_t max_columns = int64_t{1} << 20;
  // Bytes, judged by PeakBytes() of the header: RESOURCE_EXHAUSTED as soon as it was read.
  int64_t max_peak_bytes = int64_t{64} << 30;
  // A `complex` file is INVALID_ARGUMENT where this is false: who wants real numbers has no use for
  // it.
  bool complex = true;
  // Text over compressed bytes, judged once 1 MiB of text came out: INVALID_ARGUMENT.
  double max_gzip_ratio = 200;
  // Whether the reader says which lines make up which entry of a `coordinate` file: TakeLineMap().
  bool map_lines = false;
  // Bytes of text that one task parses.
  size_t segment_bytes = size_t{1} << 20;
};

// A longer line is INVALID_ARGUMENT, comments included (the format allows 1024 bytes).
inline constexpr size_t kMaxMatrixMarketLine = size_t{64} << 10;

// What the parts of an entry are multiplied by to give the one across the diagonal, where a file
// gives one of the two: the same, its negative or its conjugate. 1 for `general`.
constexpr double MirrorSign(MatrixMarketHeader::Symmetry symmetry) {
  return symmetry == MatrixMarketHeader::Symmetry::kSkewSymmetric ? -1.0 : 1.0;
}
constexpr double ImaginaryMirrorSign(MatrixMarketHeader::Symmetry symmetry) {
  return symmetry == MatrixMarketHeader::Symmetry::kHermitian ? -1.0 : MirrorSign(symmetry);
}

// The bytes that a reader holds at most for the entries of such a file, raw and assembled
// together, text that waits to be parsed aside: what a server reserves once it knows the header.
// The reader fails rather than read more entries than declared. Saturates at 2^63 - 1.
int64_t PeakBytes(const MatrixMarketHeader& header);

}  // namespace crout

#endif  // CROUT_KERNELS_IO_MATRIX_MARKET_H_
