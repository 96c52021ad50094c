#include "kernels/condition.h"

#include <cmath>

#include "kernels/host_vector_solver.h"
#include "kernels/norm_estimator.h"
#include "kernels/sync_on_exit.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

absl::StatusOr<size_t> VectorBytes(int64_t n) { return MatrixBytes(n, 1, DType::kFloat64); }

}  // namespace

absl::StatusOr<size_t> RcondBytes(const TriangularSolver& solver, DType factor_dtype, int64_t n) {
  CROUT_ASSIGN_OR_RETURN(const size_t solver_bytes,
                         FactorSolver::Bytes(solver, factor_dtype, n, 1));
  CROUT_ASSIGN_OR_RETURN(const size_t vector_bytes, VectorBytes(n));
  return ByteSum().Add(solver_bytes).Add(vector_bytes).total();
}

absl::StatusOr<double> EstimateRcond(ExecutionContext& context, const Factorization& factor,
                                     const TriangularSolver& solver, double norm_one,
                                     StopRequested stop) {
  const int64_t n = factor.summary.n;
  CROUT_ASSIGN_OR_RETURN(const size_t vector_bytes, VectorBytes(n));
  CROUT_ASSIGN_OR_RETURN(FactorSolver factor_solver,
                         FactorSolver::Create(context, factor, solver, 0, 1));
  CROUT_ASSIGN_OR_RETURN(Buffer vector, context.device().memory().Allocate(vector_bytes));
  SyncOnExit sync(context);
  HostVectorSolver inverse(context, factor_solver, vector.as<double>(), SolveWith::kFactored, stop);
  CROUT_ASSIGN_OR_RETURN(const double inverse_norm,
                         EstimateNormOne(n, [&](bool transpose, std::span<double> x) {
                           return inverse.Solve(transpose ? Op::kTranspose : Op::kNone, x);
                         }));
  sync.Dismiss();
  // Divided one after the other: the product may overflow where the quotient does not.
  const double rcond = 1 / inverse_norm / norm_one;
  return std::isfinite(rcond) ? rcond : 0.0;
}

}  // namespace crout
