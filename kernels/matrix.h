// SPDX-License-Identifier: Apache-2.0

// Views of dense matrices. A view owns nothing and is valid while its buffer lives. Only code that
// runs on the buffer's device may access the elements.
#ifndef CROUT_KERNELS_MATRIX_H_
#define CROUT_KERNELS_MATRIX_H_

#include <cstddef>
#include <cstdint>

#include "kernels/dtype.h"

namespace crout {

enum class Layout : uint8_t { kColumnMajor, kRowMajor };

struct AnyMatrix;

// Element (i, j), 0-based, is at data[i + j * ld]; ld >= max(1, rows).
template <class T>
struct MatrixView {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t ld = 1;

  // constexpr, so that device code may call it.
  constexpr T& operator()(int64_t i, int64_t j) const { return data[i + j * ld]; }

  // Converts to a view whose element type is known at run time.
  operator AnyMatrix() const;
};

// A column-major matrix whose element type is known at run time.
struct AnyMatrix {
  std::byte* data = nullptr;
  DType dtype = DType::kFloat64;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t ld = 1;

  template <class T>
  MatrixView<T> As() const {
    return {reinterpret_cast<T*>(data), rows, cols, ld};
  }
};

template <class T>
MatrixView<T>::operator AnyMatrix() const {
  return {reinterpret_cast<std::byte*>(data), kDTypeOf<T>, rows, cols, ld};
}

// Converts a float64 view to a view whose type is known at run time.
inline AnyMatrix AsAny(const MatrixView<double>& view) { return view; }

// A packed matrix as received: no gaps between rows (row-major) or columns (column-major).
struct PackedMatrix {
  const std::byte* data = nullptr;
  DType dtype = DType::kFloat64;
  Layout layout = Layout::kColumnMajor;
  int64_t rows = 0;
  int64_t cols = 0;

  size_t bytes() const { return static_cast<size_t>(rows) * cols * SizeOf(dtype); }
};

// The op of op(A) X = B. For a real matrix, both transposes are equal.
enum class Op : uint8_t { kNone, kTranspose, kConjugateTranspose };

// Returns an operation whose matrix has the same moduli as op(A)^H, for A of type T. Used for
// products with the adjoint of op(A)^-1 when only moduli matter.
template <class T>
constexpr Op AdjointOf(Op op) {
  if (op != Op::kNone) return Op::kNone;
  return kIsComplex<T> ? Op::kConjugateTranspose : Op::kTranspose;
}

}  // namespace crout

#endif  // CROUT_KERNELS_MATRIX_H_
