// SPDX-License-Identifier: Apache-2.0

// LU factorization of one tile, without pivoting.
#ifndef CROUT_KERNELS_HOST_BLOCK_LU_TILE_LU_H_
#define CROUT_KERNELS_HOST_BLOCK_LU_TILE_LU_H_

#include <cstdint>
#include <limits>

#include "kernels/host/ops/blas.h"
#include "kernels/scalar.h"

namespace crout::host {

inline constexpr int64_t kTileLeaf = 16;

template <class T>
int64_t FactorLeaf(const MatrixView<T>& a) {
  for (int64_t k = 0; k < a.rows; ++k) {
    if (Abs1(a(k, k)) < std::numeric_limits<RealPart<T>>::min()) return k + 1;
    for (int64_t i = k + 1; i < a.rows; ++i) a(i, k) /= a(k, k);
    for (int64_t j = k + 1; j < a.cols; ++j) {
      for (int64_t i = k + 1; i < a.rows; ++i) a(i, j) -= a(i, k) * a(k, j);
    }
  }
  return 0;
}

// Factors the square tile `a` in place by recursive halving, unit diagonal in L. Returns 0, or the
// 1-based index of the first pivot below the smallest normal number. The part after that pivot is
// then unfinished.
template <class T>
int64_t FactorTile(const MatrixView<T>& a) {
  if (a.rows <= kTileLeaf) return FactorLeaf(a);
  const int64_t half = a.rows / 2;
  const int64_t trailing = a.rows - half;
  const MatrixView<T> a11 = Block(a, 0, 0, half, half);
  const MatrixView<T> a12 = Block(a, 0, half, half, trailing);
  const MatrixView<T> a21 = Block(a, half, 0, trailing, half);
  const MatrixView<T> a22 = Block(a, half, half, trailing, trailing);
  if (const int64_t refused = FactorTile(a11)) return refused;
  TriangularSolve(CblasLeft, CblasLower, CblasUnit, a11, a12);
  TriangularSolve(CblasRight, CblasUpper, CblasNonUnit, a11, a21);
  SubtractProduct(a21, a12, a22);
  const int64_t refused = FactorTile(a22);
  return refused == 0 ? 0 : half + refused;
}

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_BLOCK_LU_TILE_LU_H_
