// SPDX-License-Identifier: Apache-2.0

// Sources of the matrices that calls send.
#ifndef CROUT_CROUT_MATRIX_SOURCE_H_
#define CROUT_CROUT_MATRIX_SOURCE_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "crout/types.h"

namespace crout {
inline namespace api {

class BatchSource;
namespace internal {
struct Payload;
}

// A description of a matrix and a reference to its bytes; cheap to copy. The caller's memory must
// stay valid and unchanged until the call with this source returns.
class MatrixSource {
 public:
  // A dense matrix of rows * cols elements in the order of `layout`. The call returns
  // INVALID_ARGUMENT if `values` has another size.
  static MatrixSource Dense(absl::Span<const double> values, int64_t rows, int64_t cols,
                            StorageOrder layout = StorageOrder::kColumnMajor);
  static MatrixSource Dense(absl::Span<const float> values, int64_t rows, int64_t cols,
                            StorageOrder layout = StorageOrder::kColumnMajor);
  static MatrixSource Dense(absl::Span<const std::complex<double>> values, int64_t rows,
                            int64_t cols, StorageOrder layout = StorageOrder::kColumnMajor);
  static MatrixSource Dense(absl::Span<const std::complex<float>> values, int64_t rows,
                            int64_t cols, StorageOrder layout = StorageOrder::kColumnMajor);

  // A dense matrix with a stride in elements (LAPACK's leading dimension): column j (row-major: row
  // j), 0-based, starts at values + j * stride. Sent without a full copy. The call returns
  // INVALID_ARGUMENT if the stride is shorter than a column (row), if `values` is null and the
  // matrix is not empty, or if the number of bytes exceeds an int64_t.
  static MatrixSource Strided(const double* values, int64_t rows, int64_t cols, int64_t stride,
                              StorageOrder layout = StorageOrder::kColumnMajor);
  static MatrixSource Strided(const float* values, int64_t rows, int64_t cols, int64_t stride,
                              StorageOrder layout = StorageOrder::kColumnMajor);
  static MatrixSource Strided(const std::complex<double>* values, int64_t rows, int64_t cols,
                              int64_t stride, StorageOrder layout = StorageOrder::kColumnMajor);
  static MatrixSource Strided(const std::complex<float>* values, int64_t rows, int64_t cols,
                              int64_t stride, StorageOrder layout = StorageOrder::kColumnMajor);

  // A sparse rows x cols matrix in binary. Indices are 0-based, in any order; duplicates are
  // summed. Entry e is values[e] in row row_index[e] and column column_index[e]. With compressed
  // rows, the entries of row i are row_start[i] to row_start[i + 1] - 1, and row_start has rows + 1
  // elements; entries after the last row are not sent. T: one of the four element types. Index:
  // int32_t or int64_t. The call returns INVALID_ARGUMENT if the sizes of the spans disagree; the
  // server returns it for an index outside the matrix.
  template <class T, class Index>
  static MatrixSource Coordinates(absl::Span<const T> values, absl::Span<const Index> row_index,
                                  absl::Span<const Index> column_index, int64_t rows,
                                  int64_t cols) {
    return SparseBytes(DtypeOf<T>(), SparseFormat::kCoordinate, IndexBytes<Index>(),
                       Elements(values), Elements(row_index), Elements(column_index), rows, cols);
  }
  template <class T, class Index>
  static MatrixSource CompressedRows(absl::Span<const T> values, absl::Span<const Index> row_start,
                                     absl::Span<const Index> column_index, int64_t rows,
                                     int64_t cols) {
    return SparseBytes(DtypeOf<T>(), SparseFormat::kCompressedRows, IndexBytes<Index>(),
                       Elements(values), Elements(row_start), Elements(column_index), rows, cols);
  }

  // New values for the positions of a factor's sparse matrix, one for each position. They are
  // ordered by column, and by row within a column, as in compressed columns without duplicates.
  // Only for Refactor, and only for factors by sparse methods. T: the type of the previous
  // matrix.
  //
  // `pattern_digest` identifies the positions: description().sparse->pattern_digest of the
  // factor, or a digest of the caller's own matrix, as factor.proto defines it. The server returns
  // FAILED_PRECONDITION (PATTERN_MISMATCH) if the factor's matrix has another pattern, for instance
  // because another client replaced it.
  template <class T>
  static MatrixSource SparseValues(absl::Span<const T> values, absl::string_view pattern_digest) {
    return SparseValueBytes(DtypeOf<T>(), Elements(values), pattern_digest);
  }

  // A source without a matrix: every call that receives it returns `why`.
  static MatrixSource Invalid(absl::Status why);

  // A dense rows x cols matrix of ones, which needs no memory of the caller. The call returns
  // INVALID_ARGUMENT if a size is negative, if the number of bytes exceeds an int64_t, or if
  // `dtype` is unknown.
  static MatrixSource Ones(int64_t rows, int64_t cols, Dtype dtype = Dtype::kFloat64);

  // Matrix Market text, plain or gzip. `dtype` is the type in which the server stores its values.
  static MatrixSource MatrixMarket(absl::string_view text, Dtype dtype = Dtype::kFloat64);

  // Matrix Market text from a file or pipe, read in chunks while it is sent. A call with a pipe is
  // not retried. The call returns NOT_FOUND or another status of errno if the file cannot be read.
  static MatrixSource MatrixMarketFile(std::string path, Dtype dtype = Dtype::kFloat64);

  // A batch of matrices, for Factor, Refactor and FactorAndSolve, and right-hand sides for members
  // of a batch, for Solve and FactorAndSolve. `source` must outlive the call with this source.
  static MatrixSource Batch(const BatchSource& source);
  static MatrixSource BatchRhs(const BatchSource& source);

  // Returns a source of the same matrix that does not refer to the caller's memory. A file is still
  // read for each call.
  absl::StatusOr<MatrixSource> Copy() const;

  // Element type of the matrix.
  Dtype dtype() const;

  // For the library's own use.
  const internal::Payload& payload() const { return *payload_; }

 private:
  enum class SparseFormat { kCoordinate = 1, kCompressedRows = 2 };  // numbers of the contract

  explicit MatrixSource(internal::Payload payload);
  static MatrixSource DenseBytes(Dtype dtype, absl::Span<const std::byte> bytes, int64_t rows,
                                 int64_t cols, StorageOrder layout);
  static MatrixSource StridedBytes(Dtype dtype, const void* values, int64_t rows, int64_t cols,
                                   int64_t stride, StorageOrder layout);
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
  static MatrixSource SparseBytes(Dtype dtype, SparseFormat format, size_t index_bytes,
                                  const Array& values, const Array& rows_of,
                                  const Array& column_index, int64_t rows, int64_t cols);
  static MatrixSource SparseValueBytes(Dtype dtype, const Array& values,
                                       absl::string_view pattern_digest);
  template <class T>
  static constexpr Dtype DtypeOf() {
    if (std::is_same_v<T, float>) return Dtype::kFloat32;
    if (std::is_same_v<T, double>) return Dtype::kFloat64;
    if (std::is_same_v<T, std::complex<float>>) return Dtype::kComplex64;
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> ||
                      std::is_same_v<T, std::complex<float>> ||
                      std::is_same_v<T, std::complex<double>>,
                  "elements are float, double, std::complex<float> or std::complex<double>");
    return Dtype::kComplex128;
  }
  template <class Index>
  static constexpr size_t IndexBytes() {
    static_assert(std::is_integral_v<Index> && std::is_signed_v<Index> &&
                      (sizeof(Index) == sizeof(int32_t) || sizeof(Index) == sizeof(int64_t)),
                  "indices are int32_t or int64_t");
    return sizeof(Index);
  }

  std::shared_ptr<const internal::Payload> payload_;
};

}  // namespace api
}  // namespace crout

#endif  // CROUT_CROUT_MATRIX_SOURCE_H_
