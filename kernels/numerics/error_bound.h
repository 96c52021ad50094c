// SPDX-License-Identifier: Apache-2.0

// Forward error bounds of computed solutions.
#ifndef CROUT_KERNELS_NUMERICS_ERROR_BOUND_H_
#define CROUT_KERNELS_NUMERICS_ERROR_BOUND_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/numerics/residual_check.h"
#include "kernels/operators.h"
#include "kernels/stop_requested.h"

namespace crout {

// Returns the bytes of device memory that BoundForwardError allocates.
absl::StatusOr<size_t> ForwardErrorBytes(DType matrix_dtype, int64_t n);

// Bound of M^-1 - A for an approximate inverse M of A.
struct InverseError {
  // Elementwise, |M^-1 - A| <= relative |A|, except for the pivot part below. +Inf: unknown.
  double relative = 0;
  // Pivot perturbations: in at most one entry of each row and column, M^-1 and A may differ by a
  // further `pivots` times the largest entry of that column.
  double pivots = 0;
  // If true, the perturbation is relative to the largest entry of the row and column in the
  // equilibrated A instead.
  bool scaled_pivots = false;
  // A smaller perturbation counts as this absolute value, the smallest perturbed pivot.
  double least_pivot = 0;
};

// Returns the forward error bound of LAPACK gerfs for op(A) X = B, the maximum over the columns j
// of
//   est(| |op(M)| (|r_j| + (n+1) eps (|op(A)| |x_j| + |b_j|)) |_inf) / |x_j|_inf,
// but at least |op(M) r_j|_inf / |x_j|_inf, and divided by 1 - q. M is `inverse`, and q bounds the
// effect of its error. est() may underestimate its argument. The bound is Inf for q >= 1, and for
// x_j = 0 unless b_j = 0; then it is 0.
//
// `system.r` contains the residuals B - op(A) X; `system.w` is not used. `error` is M's error. For
// a factor of A itself, use FactorSolver::Error(); for the factor of another matrix, add the
// relative distance of the two matrices. The bound is Inf if `error.relative` is. Blocks; polls
// `stop` before each product with M.
absl::StatusOr<double> BoundForwardError(ExecutionContext& context, const CheckedSystem& system,
                                         InverseOperator& inverse, const InverseError& error,
                                         StopRequested stop);

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_ERROR_BOUND_H_
