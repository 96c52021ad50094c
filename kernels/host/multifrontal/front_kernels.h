// SPDX-License-Identifier: Apache-2.0

// Dense kernels for one front, on one core.
#ifndef CROUT_KERNELS_HOST_MULTIFRONTAL_FRONT_KERNELS_H_
#define CROUT_KERNELS_HOST_MULTIFRONTAL_FRONT_KERNELS_H_

#include <cstdint>

#include "kernels/matrix.h"
#include "kernels/scalar.h"

namespace crout::host {

// Pivot statistics of an elimination.
struct PivotCount {
  int64_t perturbed = 0;
  int64_t interchanges = 0;
  int64_t negative = 0;
  int64_t zeros = 0;  // exactly zero pivots
};

// Eliminates the columns of `a` in place, with interchanges among its first `pivot_rows` rows:
//   P A = [L; L'] U, where [L; L'] is unit lower trapezoidal.
// `pivot_rows` is at least the number of columns, which is at most kPanelColumns. ipiv[k] is the
// 0-based row with which row k was exchanged.
//
// A pivot whose size (|Re| + |Im|) is below smallest[k] > 0 is replaced by a number of that size
// and the same sign. smallest[k] is then negated, or set to -infinity if the pivot was exactly
// zero.
template <class T>
void EliminatePanel(const MatrixView<T>& a, int64_t pivot_rows, RealPart<T>* smallest,
                    int32_t* ipiv, PivotCount& count);
inline constexpr int64_t kPanelColumns = 32;

// Exchanges rows k and ipiv[k] of `a`, for k = 0, ..., count - 1 in order.
template <class T>
void ExchangeRows(const int32_t* ipiv, int64_t count, const MatrixView<T>& a);

// b := l^-1 b for unit lower triangular l, column by column.
template <class T>
void SolveSmallLower(const MatrixView<T>& l, const MatrixView<T>& b);

// c := c - a b, without BLAS.
template <class T>
void SubtractSmallProduct(const MatrixView<T>& a, const MatrixView<T>& b, const MatrixView<T>& c);

// Largest modulus of the upper triangle of the first `cols` rows of `a`, or of all of `a`. Sets
// `finite` to false if any element of `a` is NaN or Inf.
template <class T>
double LargestOfUpper(const MatrixView<T>& a, bool& finite);
template <class T>
double LargestOf(const MatrixView<T>& a, bool& finite);

// Negates smallest[k], if positive, for each column k of `l` that has an entry of modulus above
// `most`.
template <class T>
void MarkLargeColumns(const MatrixView<T>& l, double most, RealPart<T>* smallest);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_MULTIFRONTAL_FRONT_KERNELS_H_
