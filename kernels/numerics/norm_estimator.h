// Estimates the 1-norm of a matrix that is known only by its products with vectors.
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

// A lower bound of |M|_1, most often within a factor of 3, from at most 11 products (LAPACK lacn2;
// N. J. Higham, FORTRAN codes for estimating the one-norm of a real or complex matrix, ACM TOMS 14,
// 1988; with other magnitudes in the last product). +Inf once a product is not finite; 0 for n = 0.
// An error of `apply` is returned as it is. T is double or std::complex<double>.
template <class T>
absl::StatusOr<double> EstimateNormOne(int64_t n, ApplyOperator<T> apply);

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_NORM_ESTIMATOR_H_
