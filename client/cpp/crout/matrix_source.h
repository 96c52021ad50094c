// Matrices to upload, wherever they are kept.
#ifndef CROUT_CROUT_MATRIX_SOURCE_H_
#define CROUT_CROUT_MATRIX_SOURCE_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "crout/v1/matrix.pb.h"

namespace crout::client {

class ChunkReader;

// Columns or rows in memory with the same distance from each to the next, in bytes.
struct StridedVectors {
  const std::byte* begin = nullptr;
  int64_t count = 0;
  int64_t length = 0;
  int64_t stride = 0;  // at least `length`
};

// What to upload: a description and where the bytes are. A small value; refers to the caller's
// memory, which must stay as it is until the call that was given the source returns.
class MatrixSource {
 public:
  // rows * cols elements in the order of `layout`. INVALID_ARGUMENT from the call if `values` has
  // another size.
  static MatrixSource Dense(absl::Span<const double> values, int64_t rows, int64_t cols,
                            v1::Layout layout = v1::LAYOUT_COLUMN_MAJOR);
  static MatrixSource Dense(absl::Span<const float> values, int64_t rows, int64_t cols,
                            v1::Layout layout = v1::LAYOUT_COLUMN_MAJOR);
  static MatrixSource Dense(absl::Span<const std::complex<double>> values, int64_t rows,
                            int64_t cols, v1::Layout layout = v1::LAYOUT_COLUMN_MAJOR);
  static MatrixSource Dense(absl::Span<const std::complex<float>> values, int64_t rows,
                            int64_t cols, v1::Layout layout = v1::LAYOUT_COLUMN_MAJOR);

  // The same with a stride, LAPACK's leading dimension: column j (row i, in row-major order) starts
  // at values + j * stride. Sent without a copy of the whole. INVALID_ARGUMENT from the call if
  // the stride is shorter than a column (row), `values` is null though the matrix is not empty, or
  // there are more bytes than an int64_t counts.
  static MatrixSource Strided(const double* values, int64_t rows, int64_t cols, int64_t stride,
                              v1::Layout layout = v1::LAYOUT_COLUMN_MAJOR);
  static MatrixSource Strided(const float* values, int64_t rows, int64_t cols, int64_t stride,
                              v1::Layout layout = v1::LAYOUT_COLUMN_MAJOR);
  static MatrixSource Strided(const std::complex<double>* values, int64_t rows, int64_t cols,
                              int64_t stride, v1::Layout layout = v1::LAYOUT_COLUMN_MAJOR);
  static MatrixSource Strided(const std::complex<float>* values, int64_t rows, int64_t cols,
                              int64_t stride, v1::Layout layout = v1::LAYOUT_COLUMN_MAJOR);

  // A sparse matrix of that shape, in binary; indices from 0, in any order, duplicates summed.
  // Entry e is values[e], in row row_index[e] and column column_index[e]; of compressed rows those
  // of row i are row_start[i] to row_start[i + 1] - 1, and what is behind the last row's is spare
  // and not sent. T is one of the four element types. INVALID_ARGUMENT from the call where the
  // spans' sizes do not agree, and from the server for an index beyond the shape.
  template <class T, class Index>
  static MatrixSource Coordinates(absl::Span<const T> values, absl::Span<const Index> row_index,
                                  absl::Span<const Index> column_index, int64_t rows,
                                  int64_t cols) {
    return SparseBytes(kDtypeOf<T>, v1::SPARSE_FORMAT_COORDINATE, sizeof(Index), Elements(values),
                       Elements(row_index), Elements(column_index), rows, cols);
  }
  template <class T, class Index>
  static MatrixSource CompressedRows(absl::Span<const T> values, absl::Span<const Index> row_start,
                                     absl::Span<const Index> column_index, int64_t rows,
                                     int64_t cols) {
    return SparseBytes(kDtypeOf<T>, v1::SPARSE_FORMAT_COMPRESSED_ROWS, sizeof(Index),
                       Elements(values), Elements(row_start), Elements(column_index), rows, cols);
  }

  // The values alone of a matrix whose positions are those of the sparse matrix that a factor
  // keeps: by columns, and within a column by rows, each position once, as compressed columns
  // without duplicates have them. For Refactorize alone, and for factors of sparse methods; T is
  // the type of the matrix before. `pattern_digest` is that of the factor whose positions these
  // are, description().sparse().pattern_digest(), or one of the caller's own matrix, as
  // factor.proto defines it. FAILED_PRECONDITION (PATTERN_MISMATCH) from the server where the
  // handle's matrix has another pattern by then.
  template <class T>
  static MatrixSource SparseValues(absl::Span<const T> values, absl::string_view pattern_digest) {
    return SparseValueBytes(kDtypeOf<T>, Elements(values), pattern_digest);
  }

  // Not a matrix: every call that is given it ends with `why`.
  static MatrixSource Invalid(absl::Status why);

  // rows * cols ones, which take no memory. INVALID_ARGUMENT from the call if either is negative,
  // they are more bytes than an int64_t counts, or `dtype` is unspecified or unknown.
  static MatrixSource Ones(int64_t rows, int64_t cols, v1::Dtype dtype = v1::DTYPE_FLOAT64);

  // Matrix Market text, plain or gzip; `dtype` is the type that its values are kept in.
  static MatrixSource MatrixMarket(absl::string_view text, v1::Dtype dtype = v1::DTYPE_FLOAT64);

  // The same from a file or a pipe, read in chunks while it is sent. A call that has read from a
  // pipe is not tried again. NOT_FOUND or another status
  // of errno from the call if it cannot be read.
  static MatrixSource MatrixMarketFile(std::string path, v1::Dtype dtype = v1::DTYPE_FLOAT64);

  const v1::MatrixSpec& spec() const { return spec_; }

  // Whether Open() gives the same bytes each time: not so for a pipe.
  bool repeatable() const;

  // Starts a pass over the bytes; a file is read anew for each.
  absl::StatusOr<std::unique_ptr<ChunkReader>> Open() const;

 private:
  MatrixSource() = default;
  static MatrixSource OfShape(v1::Dtype dtype, int64_t rows, int64_t cols, v1::Layout layout);
  static MatrixSource DenseBytes(v1::Dtype dtype, size_t element_size,
                                 absl::Span<const std::byte> bytes, int64_t rows, int64_t cols,
                                 v1::Layout layout);
  static MatrixSource StridedBytes(v1::Dtype dtype, size_t element_size, const void* values,
                                   int64_t rows, int64_t cols, int64_t stride, v1::Layout layout);
  // `count` elements of any type.
  struct Array {
    absl::Span<const std::byte> bytes;
    int64_t count = 0;
  };
  template <class E>
  static Array Elements(absl::Span<const E> elements) {
    return {{reinterpret_cast<const std::byte*>(elements.data()), elements.size() * sizeof(E)},
            static_cast<int64_t>(elements.size())};
  }
  static MatrixSource SparseBytes(v1::Dtype dtype, v1::SparseFormat format, size_t index_bytes,
                                  const Array& values, const Array& rows_of,
                                  const Array& column_index, int64_t rows, int64_t cols);
  static MatrixSource SparseValueBytes(v1::Dtype dtype, const Array& values,
                                       absl::string_view pattern_digest);
  template <class T>
  static constexpr v1::Dtype kDtypeOf = v1::DTYPE_UNSPECIFIED;  // the type is not sent

  v1::MatrixSpec spec_;
  absl::Status status_;
  std::vector<absl::Span<const std::byte>> bytes_;  // one after the other
  StridedVectors vectors_;                          // where they are apart: then bytes_ is unused
  std::string path_;                                // not empty: a file, and bytes_ is unused
  int64_t ones_ = -1;  // not negative: bytes of ones, and bytes_ is unused
};

template <>
inline constexpr v1::Dtype MatrixSource::kDtypeOf<float> = v1::DTYPE_FLOAT32;
template <>
inline constexpr v1::Dtype MatrixSource::kDtypeOf<double> = v1::DTYPE_FLOAT64;
template <>
inline constexpr v1::Dtype MatrixSource::kDtypeOf<std::complex<float>> = v1::DTYPE_COMPLEX64;
template <>
inline constexpr v1::Dtype MatrixSource::kDtypeOf<std::complex<double>> = v1::DTYPE_COMPLEX128;

}  // namespace crout::client

#endif  // CROUT_CROUT_MATRIX_SOURCE_H_
