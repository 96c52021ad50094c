// SPDX-License-Identifier: Apache-2.0

// A sparse matrix in compressed columns, and its assembly from entries in any order.
#ifndef CROUT_KERNELS_IO_SPARSE_MATRIX_H_
#define CROUT_KERNELS_IO_SPARSE_MATRIX_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/dtype.h"
#include "kernels/io/entry_pieces.h"
#include "kernels/io/matrix_market.h"
#include "kernels/stop_requested.h"
#include "kernels/value_map.h"

namespace crout {

// Column j holds the entries [column_start[j], column_start[j + 1]) of `row` and `value`. Indices
// are 0-based; rows are strictly ascending within a column. Stored zeros are kept.
struct SparseMatrix {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<int64_t> column_start;  // columns + 1
  std::vector<int32_t> row;
  std::vector<double> value;
  // Imaginary parts of a complex matrix, whose real parts are in `value`; empty for real matrices.
  std::vector<double> imaginary;

  // Value of an entry as double or std::complex<double>. Complex matrices have no double values.
  template <class T>
  T Value(int64_t entry) const {
    if constexpr (kIsComplex<T>) {
      return {value[entry], imaginary.empty() ? 0 : imaginary[entry]};
    } else {
      return value[entry];
    }
  }

  int64_t nonzeros() const { return static_cast<int64_t>(row.size()); }
};

// Owns the arrays of a ValueMap from the lines of a file to the entries of its matrix.
struct ValueMapData {
  ValueMapShape shape;
  uint64_t digest = 0;  // digest of the lines in order: SeriesResult.entry_digest
  std::vector<int32_t> start;
  std::vector<uint32_t> source;

  bool empty() const { return start.empty(); }
};

// Host memory held by both, in bytes.
inline size_t ResultBytes(const SparseMatrix& matrix, const ValueMapData& map) {
  return matrix.column_start.capacity() * sizeof(int64_t) +
         matrix.row.capacity() * sizeof(int32_t) +
         (matrix.value.capacity() + matrix.imaginary.capacity()) * sizeof(double) +
         (map.start.capacity() + map.source.capacity()) * sizeof(int32_t);
}

// Upper bound on the map's size, in bytes. The file has at most ValueMapShape::kMaxLines lines.
size_t ValueMapBytes(const MatrixMarketHeader& header);

// An entry as in a file, but 0-based. For complex entries `value` is the real part.
struct MatrixEntry {
  int32_t row;
  int32_t column;
  double value;
};

// Assembles a matrix from entries in file order. Blocks are freed as they are used. For `complex`
// files `imaginary` holds the imaginary parts in the same blocks. Entries of symmetric,
// skew-symmetric and hermitian files are mirrored across the diagonal, from either triangle.
// Duplicates are summed in file order, so the same file gives the same bits. On entry every index
// is within the header's shape, and the number of entries is the declared one. INVALID_ARGUMENT if
// a sum overflows. CANCELLED by `stop`.
//
// Holds at most PeakBytes() of the header, blocks included. Sorting can need more if one unsorted
// column has most of the entries. `claim` is then called first with the additional bytes, and its
// error is returned.
//
// If `map` is not null, it is set. It takes ValueMapBytes() in addition, which are not claimed.
absl::StatusOr<SparseMatrix> AssembleSparse(const MatrixMarketHeader& header,
                                            std::vector<std::vector<MatrixEntry>> blocks,
                                            std::vector<std::vector<double>> imaginary,
                                            absl::FunctionRef<absl::Status(size_t)> claim,
                                            StopRequested stop, ValueMapData* map = nullptr);

// The same for entries that arrived in binary form. The header describes a general matrix, complex
// if the values are complex. Holds the entries, and AssembledBytes() in addition.
absl::StatusOr<SparseMatrix> AssembleSparse(const MatrixMarketHeader& header, EntryPieces entries,
                                            absl::FunctionRef<absl::Status(size_t)> claim,
                                            StopRequested stop, ValueMapData* map = nullptr);

// Size, in bytes, of the matrix during assembly, before duplicates are summed.
size_t AssembledBytes(const MatrixMarketHeader& header);

}  // namespace crout

#endif  // CROUT_KERNELS_IO_SPARSE_MATRIX_H_
