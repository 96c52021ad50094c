// The dense work of one front, on one core.
#ifndef CROUT_KERNELS_HOST_MULTIFRONTAL_FRONT_KERNELS_H_
#define CROUT_KERNELS_HOST_MULTIFRONTAL_FRONT_KERNELS_H_

#include <cstdint>

#include "kernels/matrix.h"
#include "kernels/scalar.h"

namespace crout::host {

// What the elimination of some columns met.
struct PivotCount {
  int64_t perturbed = 0;
  int64_t interchanges = 0;
  int64_t negative = 0;
  int64_t zeros = 0;  // pivots that were exactly zero
};

// Eliminates the columns of `a` with interchanges among its first `pivot_rows` rows, of which it
// has at least as many as columns: P A = [L; L'] U, unit lower trapezoidal, in place. ipiv[k],
// 0-based: the row with which row k was exchanged. A pivot below smallest[k] > 0 (of |Re| + |Im|)
// is made so large, with its own sign; smallest[k] is negated where it was exactly zero. Columns up
// to kPanelColumns.
template <class T>
void EliminatePanel(const MatrixView<T>& a, int64_t pivot_rows, RealPart<T>* smallest,
                    int32_t* ipiv, PivotCount& count);
inline constexpr int64_t kPanelColumns = 32;

// Exchanges rows k and ipiv[k] of `a`, k in [0, count) in turn.
template <class T>
void ExchangeRows(const int32_t* ipiv, int64_t count, const MatrixView<T>& a);

// b := l^-1 b, l unit lower triangular; by columns of l.
template <class T>
void SolveSmallLower(const MatrixView<T>& l, const MatrixView<T>& b);

// c := c - a b, without a call of BLAS.
template <class T>
void SubtractSmallProduct(const MatrixView<T>& a, const MatrixView<T>& b, const MatrixView<T>& c);

// The largest modulus of the upper triangle of the first `cols` rows of `a`, or of all of it.
// `finite` is cleared where anything in `a` is NaN or Inf.
template <class T>
double LargestOfUpper(const MatrixView<T>& a, bool& finite);
template <class T>
double LargestOf(const MatrixView<T>& a, bool& finite);

// Negates smallest[k], where it is not negative yet, of each column k of `l` that has an entry of
// modulus above `most`.
template <class T>
void MarkLargeColumns(const MatrixView<T>& l, double most, RealPart<T>* smallest);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_MULTIFRONTAL_FRONT_KERNELS_H_
