// SPDX-License-Identifier: Apache-2.0

// Solves with an LU factor by substitution, dividing by each pivot.
#ifndef CROUT_KERNELS_HOST_SOLVE_SUBSTITUTION_H_
#define CROUT_KERNELS_HOST_SOLVE_SUBSTITUTION_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "kernels/lu_parameters.h"
#include "kernels/matrix.h"
#include "kernels/scalar.h"

namespace crout::host {

enum class InterchangeOrder : uint8_t { kForward, kBackward };

// Forward: b := P b. Backward: b := P^T b. PA = LU; `ipiv` holds one 1-based row per row of b.
template <class T>
void ApplyInterchanges(const int64_t* ipiv, InterchangeOrder order, const MatrixView<T>& b) {
  for (int64_t j = 0; j < b.cols; ++j) {
    for (int64_t k = 0; k < b.rows; ++k) {
      const int64_t i = order == InterchangeOrder::kForward ? k : b.rows - 1 - k;
      const int64_t p = ipiv[i] - 1;
      if (p != i) std::swap(b(i, j), b(p, j));
    }
  }
}

// b := conj(b). A^H X = B is equivalent to A^T conj(X) = conj(B). Calling this before and after a
// solve with A^T gives a solve with A^H, exactly. Does nothing for real types.
template <class T>
void Conjugate([[maybe_unused]] const MatrixView<T>& b) {
  if constexpr (kIsComplex<T>) {
    for (int64_t j = 0; j < b.cols; ++j) {
      for (int64_t i = 0; i < b.rows; ++i) b(i, j) = Conj(b(i, j));
    }
  }
}

// Solves for one right-hand side at a time. Every loop over a column of the factor has unit stride.
template <class T>
class Substitution {
 public:
  Substitution(const MatrixView<T>& lu, bool unit_in_l) : lu_(lu), unit_in_l_(unit_in_l) {}

  void SolveL(T* x) const {
    for (int64_t k = 0; k < lu_.rows; ++k) {
      if (!unit_in_l_) x[k] /= lu_(k, k);
      const T xk = x[k];
      for (int64_t i = k + 1; i < lu_.rows; ++i) x[i] -= lu_(i, k) * xk;
    }
  }

  void SolveU(T* x) const {
    for (int64_t k = lu_.rows - 1; k >= 0; --k) {
      if (unit_in_l_) x[k] /= lu_(k, k);
      const T xk = x[k];
      for (int64_t i = 0; i < k; ++i) x[i] -= lu_(i, k) * xk;
    }
  }

  void SolveTransposedU(T* x) const {
    for (int64_t k = 0; k < lu_.rows; ++k) {
      T sum = x[k];
      for (int64_t i = 0; i < k; ++i) sum -= lu_(i, k) * x[i];
      x[k] = unit_in_l_ ? sum / lu_(k, k) : sum;
    }
  }

  void SolveTransposedL(T* x) const {
    for (int64_t k = lu_.rows - 1; k >= 0; --k) {
      T sum = x[k];
      for (int64_t i = k + 1; i < lu_.rows; ++i) sum -= lu_(i, k) * x[i];
      x[k] = unit_in_l_ ? sum : sum / lu_(k, k);
    }
  }

 private:
  const MatrixView<T> lu_;
  const bool unit_in_l_;
};

// b := op(A)^-1 b.
template <class T>
void Substitute(const FactorView& factor, Op op, const MatrixView<T>& b) {
  if (b.rows == 0) return;  // lu.data and b.data may be null
  const Substitution<T> substitution(factor.lu.As<T>(), factor.unit_diagonal == UnitDiagonal::kL);
  if (op == Op::kNone) ApplyInterchanges(factor.ipiv, InterchangeOrder::kForward, b);
  if (op == Op::kConjugateTranspose) Conjugate(b);
  for (int64_t j = 0; j < b.cols; ++j) {
    if (op == Op::kNone) {
      substitution.SolveL(&b(0, j));
      substitution.SolveU(&b(0, j));
    } else {
      substitution.SolveTransposedU(&b(0, j));
      substitution.SolveTransposedL(&b(0, j));
    }
  }
  if (op == Op::kConjugateTranspose) Conjugate(b);
  if (op != Op::kNone) ApplyInterchanges(factor.ipiv, InterchangeOrder::kBackward, b);
}

// True if the reciprocals of U's pivots are finite. OpenBLAS multiplies by them in getrf and in
// triangular solves, where infinite reciprocals of subnormal pivots turn zeros into NaN.
template <class T>
bool HasReciprocals(const MatrixView<T>& lu) {
  constexpr RealPart<T> kSmallest = 4 * std::numeric_limits<RealPart<T>>::min();
  for (int64_t k = 0; k < std::min(lu.rows, lu.cols); ++k) {
    if (LargestPart(lu(k, k)) < kSmallest) return false;
  }
  return true;
}

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_SOLVE_SUBSTITUTION_H_
