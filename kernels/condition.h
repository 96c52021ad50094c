// Reciprocal condition numbers from a factor.
#ifndef CROUT_KERNELS_CONDITION_H_
#define CROUT_KERNELS_CONDITION_H_

#include "absl/status/statusor.h"
#include "kernels/factor_solver.h"
#include "kernels/factorization.h"

namespace crout {

// Bytes of device memory that EstimateRcond owns.
absl::StatusOr<size_t> RcondBytes(const TriangularSolver& solver, DType factor_dtype, int64_t n);

// 1 / (|As|_1 est(|As^-1|_1)) of the matrix that was factored, LAPACK gecon. `norm_one` = |As|_1.
// Not singular. 0 where the estimate overflows. Blocks; `stop` is asked before each solve.
absl::StatusOr<double> EstimateRcond(ExecutionContext& context, const Factorization& factor,
                                     const TriangularSolver& solver, double norm_one,
                                     StopRequested stop);

}  // namespace crout

#endif  // CROUT_KERNELS_CONDITION_H_
