// Forward error bounds of computed solutions.
#ifndef CROUT_KERNELS_NUMERICS_ERROR_BOUND_H_
#define CROUT_KERNELS_NUMERICS_ERROR_BOUND_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/inverse_operator.h"
#include "kernels/numerics/residual_check.h"
#include "kernels/stop_requested.h"

namespace crout {

// Bytes of device memory that BoundForwardError owns.
absl::StatusOr<size_t> ForwardErrorBytes(DType matrix_dtype, int64_t n);

// How far M^-1, M an inverse near that of A, is from A.
struct InverseError {
  // An e for which |M^-1 - A| <= e |A|, elementwise, but for what pivots add. +Inf: unknown.
  double relative = 0;
  // In no more than one entry of each row and column there may be another difference, of up to so
  // much beside the largest of its column: pivots that were made larger.
  double pivots = 0;
  // Beside the largest of its row and column in A as equilibration scales it, instead.
  bool scaled_pivots = false;
  // But where that is less than this number, which no pivot is made smaller than, as much as this.
  double least_pivot = 0;
};

// The bound of LAPACK gerfs for all columns of X in op(A) X = B, in which est() may be below what
// it estimates: max over j of
//   est(| |op(M)| (|r_j| + (n+1) eps (|op(A)| |x_j| + |b_j|)) |_inf) / |x_j|_inf,
// at least |op(M) r_j|_inf / |x_j|_inf, and divided by 1 - q where q bounds what the error of M,
// the `inverse`, makes of it. Inf from q = 1 on, and for x_j = 0 unless b_j = 0: then 0.
//
// `system.r` holds the residuals B - op(A) X; `system.w` is not used. `error` is M's:
// FactorSolver::Error() for a factor of the very A; for that of another matrix, how far the two are
// apart comes on top of what is relative. Where that is Inf the bound is, too. Blocks; `stop` is
// asked before each product with M.
absl::StatusOr<double> BoundForwardError(ExecutionContext& context, const CheckedSystem& system,
                                         InverseOperator& inverse, const InverseError& error,
                                         StopRequested stop);

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_ERROR_BOUND_H_
