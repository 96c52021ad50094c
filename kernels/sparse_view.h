// SPDX-License-Identifier: Apache-2.0

// Views of square sparse matrices: compressed columns with a row index.
#ifndef CROUT_KERNELS_SPARSE_VIEW_H_
#define CROUT_KERNELS_SPARSE_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <limits>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/matrix.h"
#include "kernels/scalar.h"

namespace crout {

// The stored entries of a matrix of order n; all others are zero. Indices are 0-based. Column j has
// the entries column_start[j] to column_start[j + 1] - 1. The row index gives row i the entries
// row_start[i] to row_start[i + 1] - 1. Rows ascend strictly within a column, columns within a row.
//
// Rows of op(A) are read in index order for either op. If one thread or warp computes a row of the
// result, sums need no atomics and are bitwise reproducible.
template <class T>
struct SparseView {
  int64_t n = 0;
  const int64_t* column_start = nullptr;  // n + 1 elements
  const int64_t* row_start = nullptr;     // n + 1 elements
  const T* value = nullptr;               // by columns, like `row`
  const int32_t* row = nullptr;
  const int32_t* column = nullptr;    // by rows, like `position`
  const int32_t* position = nullptr;  // index of the entry in `value`

  // Calls visit(k, v) for every entry v in row i and column k of op(A), k ascending.
  template <class Visit>
  void ForRow(Op op, int64_t i, Visit&& visit) const {
    if (op == Op::kNone) {
      for (int64_t e = row_start[i]; e < row_start[i + 1]; ++e)
        visit(column[e], value[position[e]]);
    } else {
      for (int64_t e = column_start[i]; e < column_start[i + 1]; ++e) {
        visit(row[e], op == Op::kConjugateTranspose ? Conj(value[e]) : value[e]);
      }
    }
  }
};

// Byte offsets of the arrays in the single block that holds them. Arrays with wider elements come
// first, so that an aligned block aligns every array.
struct SparseLayout {
  // 0 <= n, nonzeros < 2^31.
  constexpr SparseLayout(int64_t n, int64_t nonzeros, DType dtype)
      : row_start((n + 1) * sizeof(int64_t)),
        value(2 * row_start),
        row(value + nonzeros * SizeOf(dtype)),
        column(row + nonzeros * sizeof(int32_t)),
        position(column + nonzeros * sizeof(int32_t)),
        bytes(position + nonzeros * sizeof(int32_t)) {}

  size_t column_start = 0;
  size_t row_start;
  size_t value;
  size_t row;
  size_t column;
  size_t position;
  size_t bytes;  // size of the block
};

// A sparse matrix whose element type is known at run time, in a block laid out by SparseLayout.
struct AnySparse {
  const std::byte* data = nullptr;
  DType dtype = DType::kFloat64;
  int64_t n = 0;
  int64_t nonzeros = 0;

  template <class T>
  SparseView<T> As() const {
    const SparseLayout at(n, nonzeros, dtype);
    return {n,
            reinterpret_cast<const int64_t*>(data + at.column_start),
            reinterpret_cast<const int64_t*>(data + at.row_start),
            reinterpret_cast<const T*>(data + at.value),
            reinterpret_cast<const int32_t*>(data + at.row),
            reinterpret_cast<const int32_t*>(data + at.column),
            reinterpret_cast<const int32_t*>(data + at.position)};
  }
};

// Returns the bytes of the block. INVALID_ARGUMENT if the order or the number of entries is
// negative or above 2^31 - 1.
inline absl::StatusOr<size_t> SparseBytes(int64_t n, int64_t nonzeros, DType dtype) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (n < 0 || n > kMax || nonzeros < 0 || nonzeros > kMax) {
    return absl::InvalidArgumentError(absl::StrCat("the sparse matrix has order ", n, " and ",
                                                   nonzeros, " entries; both must be from 0 to ",
                                                   kMax));
  }
  return SparseLayout(n, nonzeros, dtype).bytes;
}

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_VIEW_H_
