// SPDX-License-Identifier: Apache-2.0

// Estimates the 1-norm of a matrix from products with vectors.
#ifndef CROUT_KERNELS_NUMERICS_NORM_ESTIMATOR_H_
#define CROUT_KERNELS_NUMERICS_NORM_ESTIMATOR_H_

#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace crout {

// x := M x, or M^H x if `adjoint`. x has n elements, in host memory.
template <class T>
using ApplyOperator = absl::FunctionRef<absl::Status(bool adjoint, std::span<T> x)>;

// Returns a lower bound of |M|_1, usually within a factor of 3, from at most 11 products. Source:
// LAPACK lacn2; N. J. Higham, FORTRAN codes for estimating the one-norm of a real or complex
// matrix, ACM TOMS 14, 1988; the last product uses other magnitudes. +Inf if a product is not
// finite; 0 for n = 0. Returns the error of `apply`, if any. T is double or std::complex<double>.
template <class T>
absl::StatusOr<double> EstimateNormOne(int64_t n, ApplyOperator<T> apply);

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_NORM_ESTIMATOR_H_
