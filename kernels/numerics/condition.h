// Reciprocal condition numbers from a factor.
#ifndef CROUT_KERNELS_NUMERICS_CONDITION_H_
#define CROUT_KERNELS_NUMERICS_CONDITION_H_

#include "absl/status/statusor.h"
#include "kernels/factorization.h"
#include "kernels/numerics/factor_solver.h"

namespace crout {

// Bytes of device memory that EstimateRcond owns.
absl::StatusOr<size_t> RcondBytes(const TriangularSolver& solver, DType factor_dtype, int64_t n);

// 1 / (|A|_1 est(|A^-1|_1)), LAPACK gecon, of the matrix as it arrived or of the one that was
// factored. `norm_one`: of that matrix. Not singular. At most 1; 0 where the estimate overflows.
// Blocks; `stop` is asked before each solve.
absl::StatusOr<double> EstimateRcond(ExecutionContext& context, const Factorization& factor,
                                     const TriangularSolver& solver, SolveWith with,
                                     double norm_one, StopRequested stop);

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_CONDITION_H_
