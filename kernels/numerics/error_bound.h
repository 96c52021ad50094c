// Forward error bounds of computed solutions.
#ifndef CROUT_KERNELS_NUMERICS_ERROR_BOUND_H_
#define CROUT_KERNELS_NUMERICS_ERROR_BOUND_H_

#include "absl/status/statusor.h"
#include "kernels/factorization.h"
#include "kernels/numerics/factor_solver.h"

namespace crout {

// Bytes of device memory that BoundForwardError owns.
absl::StatusOr<size_t> ForwardErrorBytes(int64_t n);

// The bound of LAPACK gerfs for all columns of `x` against op(A) x = b, in which est() may be below
// what it estimates: max over j of
//   est(| |op(A)^-1| (|r_j| + (n+1) eps (|op(A)| |x_j| + |b_j|)) |_inf) / |x_j|_inf,
// at least |op(A)^-1 r_j|_inf / |x_j|_inf, and divided by 1 - q where q bounds what the error of
// the factor makes of it. Inf from q = 1 on, and for x_j = 0 unless b_j = 0: then 0. `r` holds the
// residuals b - op(A) x. Blocks; `stop` is asked before each solve.
absl::StatusOr<double> BoundForwardError(ExecutionContext& context, const Factorization& factor,
                                         FactorSolver& solver, Op op, const MatrixView<double>& x,
                                         const MatrixView<double>& b, const MatrixView<double>& r,
                                         StopRequested stop);

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_ERROR_BOUND_H_
