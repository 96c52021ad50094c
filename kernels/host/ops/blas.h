// BLAS level 3 on views. Only from work that a Executor runs: OpenBLAS then takes the cores
// that the work was given, and one inside a parallel region.
#ifndef CROUT_KERNELS_HOST_OPS_BLAS_H_
#define CROUT_KERNELS_HOST_OPS_BLAS_H_

#include <cblas.h>

#include <cstdint>

#include "kernels/matrix.h"

namespace crout::host {

// rows x cols elements of m from (row, col) on.
template <class T>
MatrixView<T> Block(const MatrixView<T>& m, int64_t row, int64_t col, int64_t rows, int64_t cols) {
  return {m.data + row + col * m.ld, rows, cols, m.ld};
}

// c := a b. None of the dimensions is 0.
inline void Product(const MatrixView<double>& a, const MatrixView<double>& b,
                    const MatrixView<double>& c) {
  cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, c.rows, c.cols, a.cols, 1, a.data, a.ld,
              b.data, b.ld, 0, c.data, c.ld);
}

inline void Product(const MatrixView<float>& a, const MatrixView<float>& b,
                    const MatrixView<float>& c) {
  cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, c.rows, c.cols, a.cols, 1, a.data, a.ld,
              b.data, b.ld, 0, c.data, c.ld);
}

// c := c - a b. Nothing where a dimension is 0.
inline void SubtractProduct(const MatrixView<double>& a, const MatrixView<double>& b,
                            const MatrixView<double>& c) {
  if (c.rows == 0 || c.cols == 0 || a.cols == 0) return;
  cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, c.rows, c.cols, a.cols, -1, a.data, a.ld,
              b.data, b.ld, 1, c.data, c.ld);
}

inline void SubtractProduct(const MatrixView<float>& a, const MatrixView<float>& b,
                            const MatrixView<float>& c) {
  if (c.rows == 0 || c.cols == 0 || a.cols == 0) return;
  cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, c.rows, c.cols, a.cols, -1, a.data, a.ld,
              b.data, b.ld, 1, c.data, c.ld);
}

// b := a^-1 b (left) or b a^-1 (right), a triangular. It multiplies by reciprocals of the diagonal.
inline void TriangularSolve(CBLAS_SIDE side, CBLAS_UPLO uplo, CBLAS_DIAG diag,
                            const MatrixView<double>& a, const MatrixView<double>& b) {
  if (b.rows == 0 || b.cols == 0) return;
  cblas_dtrsm(CblasColMajor, side, uplo, CblasNoTrans, diag, b.rows, b.cols, 1, a.data, a.ld,
              b.data, b.ld);
}

inline void TriangularSolve(CBLAS_SIDE side, CBLAS_UPLO uplo, CBLAS_DIAG diag,
                            const MatrixView<float>& a, const MatrixView<float>& b) {
  if (b.rows == 0 || b.cols == 0) return;
  cblas_strsm(CblasColMajor, side, uplo, CblasNoTrans, diag, b.rows, b.cols, 1, a.data, a.ld,
              b.data, b.ld);
}

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_BLAS_H_
