// SPDX-License-Identifier: Apache-2.0

// Blocked dense elimination of one front, on one core. Small blocks use front_kernels.h, large ones
// BLAS.
#ifndef CROUT_KERNELS_HOST_MULTIFRONTAL_FRONT_ELIMINATION_H_
#define CROUT_KERNELS_HOST_MULTIFRONTAL_FRONT_ELIMINATION_H_

#include <cstdint>

#include "kernels/host/multifrontal/front_kernels.h"
#include "kernels/host/ops/blas.h"
#include "kernels/matrix.h"
#include "kernels/scalar.h"

namespace crout::host {

// b := l^-1 b for unit lower triangular l.
template <class T>
void SolveLower(const MatrixView<T>& l, const MatrixView<T>& b) {
  if (l.cols <= 8) {
    SolveSmallLower(l, b);
  } else {
    TriangularSolve(CblasLeft, CblasLower, CblasUnit, l, b);
  }
}

// c := c - a b.
template <class T>
void Subtract(const MatrixView<T>& a, const MatrixView<T>& b, const MatrixView<T>& c) {
  // Below this many operations, a BLAS call costs more than the product.
  constexpr int64_t kSmallProduct = 20000;
  if (c.rows * c.cols * a.cols < kSmallProduct || a.cols <= 4) {
    SubtractSmallProduct(a, b, c);
  } else {
    SubtractProduct(a, b, c);
  }
}

// EliminatePanel() for any number of columns: splits the columns recursively down to panels.
template <class T>
void EliminateColumns(const MatrixView<T>& a, int64_t pivot_rows, RealPart<T>* smallest,
                      int32_t* ipiv, PivotCount& count) {
  if (a.cols <= kPanelColumns) {
    EliminatePanel(a, pivot_rows, smallest, ipiv, count);
    return;
  }
  const int64_t left = a.cols / 2 / kPanelColumns * kPanelColumns + (a.cols < 64 ? 32 : 0);
  const int64_t right = a.cols - left;
  EliminateColumns(Block(a, 0, 0, a.rows, left), pivot_rows, smallest, ipiv, count);
  ExchangeRows(ipiv, left, Block(a, 0, left, a.rows, right));
  const MatrixView<T> u = Block(a, 0, left, left, right);
  const MatrixView<T> trailing = Block(a, left, left, a.rows - left, right);
  SolveLower(Block(a, 0, 0, left, left), u);
  SubtractProduct(Block(a, left, 0, a.rows - left, left), u, trailing);
  EliminateColumns(trailing, pivot_rows - left, smallest + left, ipiv + left, count);
  ExchangeRows(ipiv + left, right, Block(a, left, 0, a.rows - left, left));
  for (int64_t k = left; k < a.cols; ++k) ipiv[k] += static_cast<int32_t>(left);
}

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_MULTIFRONTAL_FRONT_ELIMINATION_H_
