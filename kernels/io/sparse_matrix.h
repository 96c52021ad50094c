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
// are 0-based; rows ascend strictly within a column. Zeros that the file stores are kept.
struct SparseMatrix {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<int64_t> column_start;  // columns + 1
  std::vector<int32_t> row;
  std::vector<double> value;
  // Of complex matrices the imaginary parts, beside the real ones in `value`; empty of real ones.
  std::vector<double> imaginary;

  // An entry's value, double or std::complex<double>. A complex matrix has no real ones.
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

// Which lines of a file make up the entries of its matrix, in the terms of ValueMap, whose elements
// are the entries.
struct LineMap {
  ValueMapShape shape;
  uint64_t digest = 0;  // of the lines in their order: SeriesResult.entry_digest
  std::vector<int32_t> start;
  std::vector<uint32_t> source;

  bool empty() const { return start.empty(); }
};

// Bytes of host memory that the two hold.
inline size_t ResultBytes(const SparseMatrix& matrix, const LineMap& map) {
  return matrix.column_start.capacity() * sizeof(int64_t) +
         matrix.row.capacity() * sizeof(int32_t) +
         (matrix.value.capacity() + matrix.imaginary.capacity()) * sizeof(double) +
         (map.start.capacity() + map.source.capacity()) * sizeof(int32_t);
}

// What the map of such a file holds at most. The file has at most ValueMapShape::kMostLines.
size_t LineMapBytes(const MatrixMarketHeader& header);

// An entry as a file gives it, 0-based; of a complex one the real part.
struct MatrixEntry {
  int32_t row;
  int32_t column;
  double value;
};

// Entries in file order, in blocks, each freed once it was used; of `complex` files also their
// imaginary parts, in the same blocks. Those of symmetric, skew-symmetric and hermitian files are
// mirrored across the diagonal, from whichever triangle they are in.
// Duplicates are summed in file order, so that the same file gives the same bits.
// INVALID_ARGUMENT: a sum that overflows. CANCELLED by `stop`. On entry every index is within the
// header's shape, and there are as many entries as it says.
//
// Holds PeakBytes() of the header at most, the blocks included. Where sorting takes more, since one
// column that is not sorted has most of the entries, `claim` is asked for those bytes first; its
// error is returned.
//
// `map`, where it is not null, is set: LineMapBytes() beside that, which are not asked for.
absl::StatusOr<SparseMatrix> AssembleSparse(const MatrixMarketHeader& header,
                                            std::vector<std::vector<MatrixEntry>> blocks,
                                            std::vector<std::vector<double>> imaginary,
                                            absl::FunctionRef<absl::Status(size_t)> claim,
                                            StopRequested stop, LineMap* map = nullptr);

// The same of entries that arrived in binary; the header is of a general matrix, and complex where
// the values are. Holds what they hold, and AssembledBytes() beside that.
absl::StatusOr<SparseMatrix> AssembleSparse(const MatrixMarketHeader& header, EntryPieces entries,
                                            absl::FunctionRef<absl::Status(size_t)> claim,
                                            StopRequested stop, LineMap* map = nullptr);

// Of such a matrix while it is made, before duplicates are summed.
size_t AssembledBytes(const MatrixMarketHeader& header);

}  // namespace crout

#endif  // CROUT_KERNELS_IO_SPARSE_MATRIX_H_
