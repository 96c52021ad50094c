// How a multifrontal LU factor lies in memory, on every device: one block, whose offsets are the
// analysis'.
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

// Front f, in the terms of Analysis, was F = [F11 F12; F21 F22] with d1 rows and columns in F11 and
// d2 in F22, when its children had been added. Interchanges were chosen inside F11 alone:
//   P F11 = L11 U11, L11 of unit diagonal;  U12 = L11^-1 P F12;  L21 = F21 U11^-1;
// and F22 - L21 U12 was added to the parent. So L and U of B, rows exchanged front by front, are
// what is kept, not sparse.md's F11^-1 F12: the work is the same, both are downloaded and both
// kinds of solve go through one panel forward and one backward.
//
// The block holds, of type T, for each front from element analysis.factor_start[f] on:
//   panel  (d1 + d2) x d1, column-major, ld = d1 + d2:  [L11 \ U11; L21]
//   U12    d1 x d2, column-major, ld = d1, right after it
// and after all fronts, from byte `pivots` on, n int32: for position k of front f the row of F11,
// 0-based in [k - first_position[f], d1), with which row k - first_position[f] was exchanged, in
// turn.
struct MultifrontalLayout {
  MultifrontalLayout(const Analysis& analysis, DType dtype)
      : pivots((static_cast<size_t>(analysis.factor_entries()) * SizeOf(dtype) + 15) / 16 * 16),
        bytes(pivots + static_cast<size_t>(analysis.n) * sizeof(int32_t)) {}

  size_t pivots;
  size_t bytes;  // of the block
};

template <class T>
struct FrontFactor {
  MatrixView<T> panel;                                                             // (d1 + d2) x d1
  MatrixView<T> u12;                                                               // d1 x d2
  std::conditional_t<std::is_const_v<T>, const int32_t, int32_t>* ipiv = nullptr;  // d1
};

// block: aligned for T and int32_t. T is const where it is.
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

// A pivot of column k that no row of F11 has, in modulus (|Re| + |Im|), at least
//   PivotPerturbation(dtype, bordered) * m_k,  m_k the largest of column k of B as it came, in rows
// that are not kept (of B, where that is 0), is replaced by one of that size and of its own sign,
// and counted. The square root of the unit roundoff where multipliers in L21 grow by as much as the
// pivot is small; the unit roundoff itself where there is no border, and all interchanges were
// possible, and where Analysis::delayed, and pivots are chosen by their own front.
inline double PivotPerturbation(DType dtype, bool bordered) {
  return bordered ? std::sqrt(UnitRoundoff(dtype)) : UnitRoundoff(dtype);
}

// Multipliers in L21 above this show a column whose pivot was not acceptable.
inline double LargestMultiplier(const Analysis& analysis) { return 1 / analysis.pivot_threshold; }

// A determinant as sign * exp(log_abs): the sign of modulus 1, or 0 where the matrix is singular.
struct LogDeterminant {
  std::complex<double> sign = 1;
  double log_abs = 0;
};

// Entries of L, below its unit diagonal, and of U.
struct FactorCounts {
  int64_t lower = 0;
  int64_t upper = 0;
};

// What became of a numeric factorization.
struct NumericSummary {
  // 0, or 1 + the first position whose column had nothing but zeros to eliminate with, in F11 and
  // in F21 but for rows that are kept: B is singular, or what is eliminated of it. The pivot was
  // replaced like one that is too small: nothing in the factor is infinite for that.
  int64_t info = 0;
  int64_t singular_column = -1;  // A's, where info > 0
  int64_t perturbed_pivots = 0;  // the one of `info` included
  int64_t interchanges = 0;      // positions whose pivot was another row's
  // Of a real symmetric A without matching, interchanges, perturbations: its negative eigenvalues.
  std::optional<int64_t> negative_pivots;
  double max_abs = 0;  // of B's entries
  // max |u_ij| / max_abs, 0/0 being 1; +Inf where L or U holds a NaN or Inf. 0 by methods that do
  // not show U.
  double pivot_growth = 1;
  // By methods that find it out themselves; else what the analysis foresaw.
  std::optional<FactorCounts> counts;
};

// Growth that one step of refinement makes up for in float32, too.
inline constexpr double kModestGrowth = 1000;

// Whether the factor may be one of another matrix: pivots were perturbed, or entries grew far.
inline bool IsUnstable(const NumericSummary& numeric) {
  return numeric.perturbed_pivots > 0 || !(numeric.pivot_growth <= kModestGrowth);
}

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_MULTIFRONTAL_FACTOR_H_
