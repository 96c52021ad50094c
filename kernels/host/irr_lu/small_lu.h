// SPDX-License-Identifier: Apache-2.0

// LU factorization of matrices too small for LAPACK to pay off.
#ifndef CROUT_KERNELS_HOST_IRR_LU_SMALL_LU_H_
#define CROUT_KERNELS_HOST_IRR_LU_SMALL_LU_H_

#include <cstdint>

#include "kernels/matrix.h"

namespace crout::host {

// True if FactorSmall is faster than LAPACK's getrf: up to 64 rows and columns for real types, 4
// for complex types.
template <class T>
constexpr bool IsSmall(const MatrixView<T>& a) {
  constexpr int64_t kLargest = kIsComplex<T> ? 4 : 64;
  return a.rows <= kLargest && a.cols <= kLargest;
}

// Factors `a` in place, PA = LU with partial pivoting. ipiv[0, min(rows, cols)) holds 1-based rows,
// as in LAPACK's getrf. The pivot is the first of several elements that are largest by |Re| + |Im|.
// Returns LAPACK's info. Right-looking by panels of four columns, without function calls or memory
// of its own. Divides by pivots whose reciprocals are out of range.
template <class T>
int64_t FactorSmall(const MatrixView<T>& a, int64_t* ipiv);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_IRR_LU_SMALL_LU_H_
