// SPDX-License-Identifier: Apache-2.0

// BLAS levels 2 and 3 on views, for all four types. Call them only from work that an Executor runs.
// OpenBLAS then uses the cores of that work, or one core inside a parallel region.
#ifndef CROUT_KERNELS_HOST_OPS_BLAS_H_
#define CROUT_KERNELS_HOST_OPS_BLAS_H_

#include <cblas.h>

#include <complex>
#include <cstdint>

#include "kernels/matrix.h"

namespace crout::host {

// The rows x cols block of m that starts at (row, col).
template <class T>
MatrixView<T> Block(const MatrixView<T>& m, int64_t row, int64_t col, int64_t rows, int64_t cols) {
  return {m.data + row + col * m.ld, rows, cols, m.ld};
}

constexpr CBLAS_TRANSPOSE ToCblas(Op op) {
  switch (op) {
    case Op::kTranspose:
      return CblasTrans;
    case Op::kConjugateTranspose:
      return CblasConjTrans;
    case Op::kNone:
      break;
  }
  return CblasNoTrans;
}

// c := alpha op(a) b + beta c. No dimension may be 0.
template <class T>
void MultiplyAdd(T alpha, Op op, const MatrixView<T>& a, const MatrixView<T>& b, T beta,
                 const MatrixView<T>& c) {
  const auto call = [&](auto gemm, auto factor, auto addend) {
    gemm(CblasColMajor, ToCblas(op), CblasNoTrans, c.rows, c.cols, b.rows, factor, a.data, a.ld,
         b.data, b.ld, addend, c.data, c.ld);
  };
  if constexpr (kDTypeOf<T> == DType::kFloat32) call(cblas_sgemm, alpha, beta);
  if constexpr (kDTypeOf<T> == DType::kFloat64) call(cblas_dgemm, alpha, beta);
  if constexpr (kDTypeOf<T> == DType::kComplex64) call(cblas_cgemm, &alpha, &beta);
  if constexpr (kDTypeOf<T> == DType::kComplex128) call(cblas_zgemm, &alpha, &beta);
}

// c := alpha op(a) b + beta c, where b and c are single columns.
template <class T>
void MultiplyAddVector(T alpha, Op op, const MatrixView<T>& a, const MatrixView<T>& b, T beta,
                       const MatrixView<T>& c) {
  const auto call = [&](auto gemv, auto factor, auto addend) {
    gemv(CblasColMajor, ToCblas(op), a.rows, a.cols, factor, a.data, a.ld, b.data, 1, addend,
         c.data, 1);
  };
  if constexpr (kDTypeOf<T> == DType::kFloat32) call(cblas_sgemv, alpha, beta);
  if constexpr (kDTypeOf<T> == DType::kFloat64) call(cblas_dgemv, alpha, beta);
  if constexpr (kDTypeOf<T> == DType::kComplex64) call(cblas_cgemv, &alpha, &beta);
  if constexpr (kDTypeOf<T> == DType::kComplex128) call(cblas_zgemv, &alpha, &beta);
}

// c := a b. No dimension may be 0.
template <class T>
void Product(const MatrixView<T>& a, const MatrixView<T>& b, const MatrixView<T>& c) {
  MultiplyAdd(T{1}, Op::kNone, a, b, T{0}, c);
}

// c := c - a b. Does nothing if a dimension is 0.
template <class T>
void SubtractProduct(const MatrixView<T>& a, const MatrixView<T>& b, const MatrixView<T>& c) {
  if (c.rows == 0 || c.cols == 0 || a.cols == 0) return;
  MultiplyAdd(T{-1}, Op::kNone, a, b, T{1}, c);
}

// b := op(a)^-1 b (left) or b op(a)^-1 (right), where a is triangular and `trans` selects op.
// Multiplies by reciprocals of the diagonal.
template <class T>
void TriangularSolve(CBLAS_SIDE side, CBLAS_UPLO uplo, CBLAS_DIAG diag, const MatrixView<T>& a,
                     const MatrixView<T>& b, CBLAS_TRANSPOSE trans = CblasNoTrans) {
  if (b.rows == 0 || b.cols == 0) return;
  const T one = 1;
  const auto call = [&](auto trsm, auto alpha) {
    trsm(CblasColMajor, side, uplo, trans, diag, b.rows, b.cols, alpha, a.data, a.ld, b.data, b.ld);
  };
  if constexpr (kDTypeOf<T> == DType::kFloat32) call(cblas_strsm, one);
  if constexpr (kDTypeOf<T> == DType::kFloat64) call(cblas_dtrsm, one);
  if constexpr (kDTypeOf<T> == DType::kComplex64) call(cblas_ctrsm, &one);
  if constexpr (kDTypeOf<T> == DType::kComplex128) call(cblas_ztrsm, &one);
}

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_BLAS_H_
