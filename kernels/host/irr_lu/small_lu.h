// LU factorization of a matrix that is too small for LAPACK's calls to pay.
#ifndef CROUT_KERNELS_HOST_IRR_LU_SMALL_LU_H_
#define CROUT_KERNELS_HOST_IRR_LU_SMALL_LU_H_

#include <cstdint>

#include "kernels/matrix.h"

namespace crout::host {

// Whether FactorSmall is faster than LAPACK's getrf: up to 64 rows and columns of real numbers, and
// 4 of complex ones.
template <class T>
constexpr bool IsSmall(const MatrixView<T>& a) {
  constexpr int64_t kLargest = kIsComplex<T> ? 4 : 64;
  return a.rows <= kLargest && a.cols <= kLargest;
}

// A := L U, PA = LU with ipiv[0, min(rows, cols)), 1-based rows of `a`, as LAPACK's getrf: of
// several largest elements (of |Re| + |Im|) the first is the pivot. Returns LAPACK's info.
// Right-looking by panels of four columns from the first on, with no call and no memory of its own.
// It divides by pivots whose reciprocals are out of range.
template <class T>
int64_t FactorSmall(const MatrixView<T>& a, int64_t* ipiv);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_IRR_LU_SMALL_LU_H_
