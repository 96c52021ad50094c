// Estimates the 1-norm of a matrix that is known only by its products with vectors.
#ifndef CROUT_KERNELS_NUMERICS_NORM_ESTIMATOR_H_
#define CROUT_KERNELS_NUMERICS_NORM_ESTIMATOR_H_

#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace crout {

// x := M x, or M^T x if `transpose`. x has n elements, in host memory.
using ApplyOperator = absl::FunctionRef<absl::Status(bool transpose, std::span<double> x)>;

// A lower bound of |M|_1, most often within a factor of 3, from at most 11 products (LAPACK lacn2;
// N. J. Higham, FORTRAN codes for estimating the one-norm of a real or complex matrix, ACM TOMS 14,
// 1988). +Inf once a product is not finite; 0 for n = 0. An error of `apply` is returned as it is.
absl::StatusOr<double> EstimateNormOne(int64_t n, ApplyOperator apply);

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_NORM_ESTIMATOR_H_
