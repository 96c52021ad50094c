// SPDX-License-Identifier: Apache-2.0

// The least-squares problems of GMRES.
#ifndef CROUT_KERNELS_NUMERICS_HESSENBERG_H_
#define CROUT_KERNELS_NUMERICS_HESSENBERG_H_

#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kernels/scalar.h"

namespace crout {

// Solves min over y of |beta e_1 - H y|_2 for an upper Hessenberg H of (j + 1) x j that grows by
// columns. Givens rotations update its triangular factor (Saad and Schultz 1986, section 3.2).
template <class T>
class HessenbergLeastSquares {
 public:
  explicit HessenbergLeastSquares(double beta) : g_{T(beta)} {}

  int64_t columns() const { return static_cast<int64_t>(columns_.size()); }
  // Returns the 2-norm of the residual at the minimum.
  double residual() const { return Modulus(g_.back()); }

  // Appends the next column h, which has columns() + 2 entries.
  void Append(std::span<const T> h) {
    std::vector<T> column(h.begin(), h.end());
    for (size_t k = 0; k < rotations_.size(); ++k) Rotate(rotations_[k], column[k], column[k + 1]);
    T& below = column.back();
    T& diagonal = column[column.size() - 2];
    const Rotation rotation = Eliminating(diagonal, below);
    Rotate(rotation, diagonal, below);
    column.pop_back();
    g_.push_back(T{});
    Rotate(rotation, g_[g_.size() - 2], g_.back());
    rotations_.push_back(rotation);
    columns_.push_back(std::move(column));
  }

  // Returns the minimizer, with 0 for unknowns of linearly dependent columns.
  std::vector<T> Solve() const {
    std::vector<T> y(g_.begin(), g_.end() - 1);
    for (int64_t j = columns() - 1; j >= 0; --j) {
      const T diagonal = columns_[j][j];
      y[j] = diagonal == T{} ? T{} : y[j] / diagonal;
      for (int64_t i = 0; i < j; ++i) y[i] -= columns_[j][i] * y[j];
    }
    return y;
  }

 private:
  // (a, b) := (c a + s b, c b - conj(s) a).
  struct Rotation {
    double c;
    T s;
  };
  static void Rotate(const Rotation& rotation, T& a, T& b) {
    const T first = rotation.c * a + rotation.s * b;
    b = rotation.c * b - Conj(rotation.s) * a;
    a = first;
  }
  static Rotation Eliminating(T a, T b) {
    const double large = Modulus(a);
    const double small = Modulus(b);
    if (small == 0) return {1, T{}};
    if (large == 0) return {0, Conj(b) / T(small)};
    const double norm = std::hypot(large, small);
    return {large / norm, a / T(large) * (Conj(b) / T(norm))};
  }

  std::vector<std::vector<T>> columns_;  // columns of the triangular factor
  std::vector<Rotation> rotations_;
  std::vector<T> g_;  // rotated right-hand side
};

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_HESSENBERG_H_
