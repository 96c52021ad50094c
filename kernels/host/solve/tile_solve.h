// SPDX-License-Identifier: Apache-2.0

// Triangular solves with a factored tile by matrix products. Products with inverted diagonal leaves
// are several times as fast as OpenBLAS's xTRSM at this size.
#ifndef CROUT_KERNELS_HOST_SOLVE_TILE_SOLVE_H_
#define CROUT_KERNELS_HOST_SOLVE_TILE_SOLVE_H_

#include <algorithm>
#include <cstdint>
#include <memory>

#include "kernels/host/ops/blas.h"

namespace crout::host {

inline constexpr int64_t kInverseLeaf = 64;

// out := inverse of the lower triangle of `a` (unit diagonal), or of its upper triangle, and zero
// outside the triangle. Both matrices are square.
template <class T>
void InvertTriangle(const MatrixView<T>& a, bool lower, const MatrixView<T>& out) {
  const int64_t n = a.rows;
  for (int64_t j = 0; j < n; ++j) {
    T* x = &out(0, j);
    std::fill_n(x, n, T{0});
    x[j] = 1;
    for (int64_t step = 0; step < (lower ? n - j : j + 1); ++step) {
      const int64_t k = lower ? j + step : j - step;
      if (!lower) x[k] /= a(k, k);
      const int64_t begin = lower ? k + 1 : 0;
      const int64_t end = lower ? n : k;
      for (int64_t i = begin; i < end; ++i) x[i] -= a(i, k) * x[k];
    }
  }
}

// Inverses of the diagonal leaves of a tile's L and U: 2 * kInverseLeaf columns of the tile's
// height.
template <class T>
class TileInverses {
 public:
  // `lu` and `memory` must outlive this object. `memory` holds 2 * kInverseLeaf * lu.rows elements.
  TileInverses(const MatrixView<T>& lu, T* memory)
      : lu_(lu),
        l_{memory, lu.rows, kInverseLeaf, lu.rows},
        u_{memory + kInverseLeaf * lu.rows, lu.rows, kInverseLeaf, lu.rows} {}

  void Fill() const {
    for (int64_t k = 0; k < lu_.rows; k += kInverseLeaf) {
      InvertTriangle(Leaf(k), true, Block(l_, k, 0, Size(k), Size(k)));
      InvertTriangle(Leaf(k), false, Block(u_, k, 0, Size(k), Size(k)));
    }
  }

  // b := L^-1 b
  void SolveLeft(const MatrixView<T>& b) const {
    const auto memory = std::make_unique_for_overwrite<T[]>(kInverseLeaf * b.cols);
    for (int64_t k = 0; k < lu_.rows; k += kInverseLeaf) {
      const MatrixView<T> rows = Block(b, k, 0, Size(k), b.cols);
      const MatrixView<T> copy = Copy(rows, memory.get());
      Product(Block(l_, k, 0, Size(k), Size(k)), copy, rows);
      const int64_t next = k + Size(k);
      const int64_t below = lu_.rows - next;
      SubtractProduct(Block(lu_, next, k, below, Size(k)), rows, Block(b, next, 0, below, b.cols));
    }
  }

  // b := b U^-1
  void SolveRight(const MatrixView<T>& b) const {
    const auto memory = std::make_unique_for_overwrite<T[]>(kInverseLeaf * b.rows);
    for (int64_t k = 0; k < lu_.rows; k += kInverseLeaf) {
      const MatrixView<T> columns = Block(b, 0, k, b.rows, Size(k));
      const MatrixView<T> copy = Copy(columns, memory.get());
      Product(copy, Block(u_, k, 0, Size(k), Size(k)), columns);
      const int64_t next = k + Size(k);
      const int64_t right = lu_.cols - next;
      SubtractProduct(columns, Block(lu_, k, next, Size(k), right),
                      Block(b, 0, next, b.rows, right));
    }
  }

 private:
  int64_t Size(int64_t k) const { return std::min(kInverseLeaf, lu_.rows - k); }
  MatrixView<T> Leaf(int64_t k) const { return Block(lu_, k, k, Size(k), Size(k)); }

  static MatrixView<T> Copy(const MatrixView<T>& from, T* memory) {
    const MatrixView<T> to{memory, from.rows, from.cols, from.rows};
    for (int64_t j = 0; j < from.cols; ++j) std::copy_n(&from(0, j), from.rows, &to(0, j));
    return to;
  }

  const MatrixView<T> lu_;
  const MatrixView<T> l_;
  const MatrixView<T> u_;
};

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_SOLVE_TILE_SOLVE_H_
