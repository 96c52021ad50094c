// SPDX-License-Identifier: Apache-2.0

// The Matrix Market exchange format: header and reader limits.
//
// Format: Boisvert, Pozo, Remington, "The Matrix Market Exchange Formats: Initial Design",
// NISTIR 5935, 1996. Where the paper does not specify the behavior, the reader follows SciPy's
// mmread.
#ifndef CROUT_KERNELS_IO_MATRIX_MARKET_H_
#define CROUT_KERNELS_IO_MATRIX_MARKET_H_

#include <cstddef>
#include <cstdint>

namespace crout {

struct MatrixMarketHeader {
  enum class Field : uint8_t { kReal, kInteger, kPattern, kComplex };
  enum class Symmetry : uint8_t { kGeneral, kSymmetric, kSkewSymmetric, kHermitian };

  // `coordinate`: one entry per line, "row column value", 1-based. `array`: one value per line,
  // column by column; symmetric and hermitian files store only the lower triangle, skew-symmetric
  // ones without the diagonal. A `complex` value is two numbers, the real part and the imaginary
  // part.
  bool coordinate = true;
  Field field = Field::kReal;
  Symmetry symmetry = Symmetry::kGeneral;
  int64_t rows = 0;
  int64_t columns = 0;
  // Number of data lines. Declared by the file and not trusted until it has been read.
  int64_t entries = 0;

  bool complex() const { return field == Field::kComplex; }

  friend bool operator==(const MatrixMarketHeader&, const MatrixMarketHeader&) = default;
};

struct MatrixMarketLimits {
  // Larger dimensions are INVALID_ARGUMENT. Values above 2^31 - 1 act as 2^31 - 1. The sparse form
  // takes 16 bytes per declared column, the only memory that a size line alone can claim.
  int64_t max_rows = int64_t{1} << 20;
  int64_t max_columns = int64_t{1} << 20;
  // Limit on PeakBytes() of the header, in bytes. RESOURCE_EXHAUSTED as soon as the header is read.
  int64_t max_peak_bytes = int64_t{64} << 30;
  // If false, `complex` files are INVALID_ARGUMENT, for callers that need real numbers.
  bool complex = true;
  // Limit on the ratio of text to compressed bytes, checked beyond 1 MiB of text. INVALID_ARGUMENT
  // beyond it.
  double max_gzip_ratio = 200;
  // If true, TakeValueMap() returns which lines make up each entry of a `coordinate` file.
  bool build_value_map = false;
  // Bytes of text that one task parses.
  size_t segment_bytes = size_t{1} << 20;
};

// Longer lines are INVALID_ARGUMENT, comments included (the format allows 1024 bytes).
inline constexpr size_t kMaxMatrixMarketLine = size_t{64} << 10;

// Factors for the real and imaginary parts of an entry that give the entry mirrored across the
// diagonal: the same entry, its negative or its conjugate. 1 for `general`.
constexpr double MirrorSign(MatrixMarketHeader::Symmetry symmetry) {
  return symmetry == MatrixMarketHeader::Symmetry::kSkewSymmetric ? -1.0 : 1.0;
}
constexpr double ImaginaryMirrorSign(MatrixMarketHeader::Symmetry symmetry) {
  return symmetry == MatrixMarketHeader::Symmetry::kHermitian ? -1.0 : MirrorSign(symmetry);
}

// Upper bound on the bytes a reader holds for the entries of a file, raw and assembled together,
// excluding text that waits to be parsed. A server reserves this once the header is read. The
// reader fails if there are more entries than declared. Saturates at 2^63 - 1.
int64_t PeakBytes(const MatrixMarketHeader& header);

}  // namespace crout

#endif  // CROUT_KERNELS_IO_MATRIX_MARKET_H_
