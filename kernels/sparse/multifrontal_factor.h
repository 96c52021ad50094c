// SPDX-License-Identifier: Apache-2.0

// Memory layout of a multifrontal LU factor, the same on every device: one block, with offsets from
// the analysis.
#ifndef CROUT_KERNELS_SPARSE_MULTIFRONTAL_FACTOR_H_
#define CROUT_KERNELS_SPARSE_MULTIFRONTAL_FACTOR_H_

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "kernels/matrix.h"
#include "kernels/sparse/analysis.h"

namespace crout {

// In the terms of Analysis, front f is F = [F11 F12; F21 F22] after its children are added. F11 is
// d1 x d1, F22 is d2 x d2. Interchanges are restricted to F11:
//   P F11 = L11 U11, L11 with unit diagonal;  U12 = L11^-1 P F12;  L21 = F21 U11^-1;
// F22 - L21 U12 is added to the parent. The block stores L and U of B, with rows exchanged front by
// front, not the F11^-1 F12 of sparse.md. The work is the same, L and U can both be downloaded, and
// solves with A and with A^T each use one panel forward and one backward.
//
// The block stores for each front, from element analysis.factor_start[f] of type T on:
//   panel  (d1 + d2) x d1, column-major, ld = d1 + d2:  [L11 \ U11; L21]
//   U12    d1 x d2, column-major, ld = d1, right after the panel
// After all fronts, n int32 follow at byte `pivots`. The element for position k of front f is the
// 0-based row of F11, in [k - first_position[f], d1), with which row k - first_position[f] was
// exchanged. Exchanges apply in order of k.
struct MultifrontalLayout {
  MultifrontalLayout(const Analysis& analysis, DType dtype)
      : pivots((static_cast<size_t>(analysis.factor_entries()) * SizeOf(dtype) + 15) / 16 * 16),
        bytes(pivots + static_cast<size_t>(analysis.n) * sizeof(int32_t)) {}

  size_t pivots;
  size_t bytes;  // size of the block
};

template <class T>
struct FrontFactor {
  MatrixView<T> panel;                                                             // (d1 + d2) x d1
  MatrixView<T> u12;                                                               // d1 x d2
  std::conditional_t<std::is_const_v<T>, const int32_t, int32_t>* ipiv = nullptr;  // d1
};

// Views of front f in `block`, which is aligned for T and int32_t. T is const if the block is.
template <class T, class Byte>
FrontFactor<T> FrontAt(const Analysis& analysis, Byte* block, int64_t f) {
  using Index = std::remove_pointer_t<decltype(FrontFactor<T>::ipiv)>;
  const int64_t d1 = analysis.eliminated(f);
  const int64_t d2 = analysis.bordered(f);
  T* const at = reinterpret_cast<T*>(block) + analysis.factor_start[f];
  const MultifrontalLayout layout(analysis, kDTypeOf<std::remove_const_t<T>>);
  return {{at, d1 + d2, d1, std::max<int64_t>(1, d1 + d2)},
          {at + (d1 + d2) * d1, d1, d2, std::max<int64_t>(1, d1)},
          reinterpret_cast<Index*>(block + layout.pivots) + analysis.first_position[f]};
}

// Relative size below which a pivot is perturbed. Let m_k be the largest modulus (|Re| + |Im|) in
// column k of the scaled matrix B, in rows that are not kept; if that is 0, the largest of all of
// B. If no candidate in F11 for column k reaches the size PivotPerturbation(dtype, bordered) * m_k,
// the pivot is replaced by one of that size and the same sign, and counted.
//
// `bordered` gives the square root of the unit roundoff, because small pivots make large
// multipliers in L21. Otherwise the unit roundoff is enough: the front has no border, so all
// interchanges were possible, or Analysis::delayed is set, so the front has acceptable pivots.
inline double PivotPerturbation(DType dtype, bool bordered) {
  return bordered ? std::sqrt(UnitRoundoff(dtype)) : UnitRoundoff(dtype);
}

// A multiplier in L21 above this shows that the column's pivot was not acceptable.
inline double LargestMultiplier(const Analysis& analysis) { return 1 / analysis.pivot_threshold; }

// A determinant as sign * exp(log_abs). `sign` has modulus 1, or is 0 if the matrix is singular.
struct LogDeterminant {
  std::complex<double> sign = 1;
  double log_abs = 0;
};

// Number of entries of L below its unit diagonal, and of U.
struct FactorCounts {
  int64_t lower = 0;
  int64_t upper = 0;
};

// Summary of a numeric factorization.
struct NumericSummary {
  // 0, or 1 + the first position whose column has only zeros left in F11 and in the rows of F21
  // that are not kept: B, or its eliminated part, is singular. The pivot is replaced like one that
  // is too small, so the factor stays finite.
  int64_t info = 0;
  int64_t singular_column = -1;  // column of A, if info > 0
  int64_t perturbed_pivots = 0;  // includes the pivot at `info`
  int64_t interchanges = 0;      // positions whose pivot came from another row
  // Number of negative eigenvalues of A. Set only for real symmetric A without matching,
  // interchanges or perturbations.
  std::optional<int64_t> negative_pivots;
  double max_abs = 0;  // largest entry of B
  // max |u_ij| / max_abs, where 0/0 is 1. +Inf if L or U contains NaN or Inf. 0 for methods that do
  // not expose U.
  double pivot_growth = 1;
  // Set by methods that count entries themselves. Unset: the counts of the analysis hold.
  std::optional<FactorCounts> counts;
};

// Pivot growth that one step of refinement compensates for, even in float32.
inline constexpr double kModestGrowth = 1000;

// True if the factor may be inaccurate: pivots were perturbed or entries grew too much.
inline bool IsUnstable(const NumericSummary& numeric) {
  return numeric.perturbed_pivots > 0 || !(numeric.pivot_growth <= kModestGrowth);
}

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_MULTIFRONTAL_FACTOR_H_
