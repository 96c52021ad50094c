// SPDX-License-Identifier: Apache-2.0

// LAPACK's LU routines on views, for all four types. See blas.h for where to call them. Each
// returns LAPACK's info; -k means that argument k was rejected.
#ifndef CROUT_KERNELS_HOST_OPS_LAPACK_H_
#define CROUT_KERNELS_HOST_OPS_LAPACK_H_

#include <complex>

// Makes lapacke.h use C++ complex types: C's _Complex is not a C++ type.
#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#include <lapacke.h>

#include "kernels/matrix.h"

namespace crout::host {

// Factors `a` in place: PA = LU. ipiv[0, min(rows, cols)) holds 1-based rows of `a`. Returns k > 0
// if u_kk is exactly zero.
template <class T>
lapack_int Getrf(const MatrixView<T>& a, lapack_int* ipiv) {
  const auto call = [&](auto getrf) {
    return getrf(LAPACK_COL_MAJOR, a.rows, a.cols, a.data, a.ld, ipiv);
  };
  if constexpr (kDTypeOf<T> == DType::kFloat32) return call(LAPACKE_sgetrf_work);
  if constexpr (kDTypeOf<T> == DType::kFloat64) return call(LAPACKE_dgetrf_work);
  if constexpr (kDTypeOf<T> == DType::kComplex64) return call(LAPACKE_cgetrf_work);
  if constexpr (kDTypeOf<T> == DType::kComplex128) return call(LAPACKE_zgetrf_work);
}

// b := op(A)^-1 b, with the results of Getrf.
template <class T>
lapack_int Getrs(Op op, const MatrixView<T>& lu, const lapack_int* ipiv, const MatrixView<T>& b) {
  const char trans = op == Op::kNone ? 'N' : op == Op::kTranspose ? 'T' : 'C';
  const auto call = [&](auto getrs) {
    return getrs(LAPACK_COL_MAJOR, trans, lu.rows, b.cols, lu.data, lu.ld, ipiv, b.data, b.ld);
  };
  if constexpr (kDTypeOf<T> == DType::kFloat32) return call(LAPACKE_sgetrs_work);
  if constexpr (kDTypeOf<T> == DType::kFloat64) return call(LAPACKE_dgetrs_work);
  if constexpr (kDTypeOf<T> == DType::kComplex64) return call(LAPACKE_cgetrs_work);
  if constexpr (kDTypeOf<T> == DType::kComplex128) return call(LAPACKE_zgetrs_work);
}

// Exchanges rows k and ipiv[k - 1] of `a`, for k = first, ..., last in order, all 1-based.
template <class T>
lapack_int Laswp(const MatrixView<T>& a, lapack_int first, lapack_int last,
                 const lapack_int* ipiv) {
  const auto call = [&](auto laswp) {
    return laswp(LAPACK_COL_MAJOR, a.cols, a.data, a.ld, first, last, ipiv, 1);
  };
  if constexpr (kDTypeOf<T> == DType::kFloat32) return call(LAPACKE_slaswp_work);
  if constexpr (kDTypeOf<T> == DType::kFloat64) return call(LAPACKE_dlaswp_work);
  if constexpr (kDTypeOf<T> == DType::kComplex64) return call(LAPACKE_claswp_work);
  if constexpr (kDTypeOf<T> == DType::kComplex128) return call(LAPACKE_zlaswp_work);
}

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_LAPACK_H_
