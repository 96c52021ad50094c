#include "kernels/jobs/solve_plan.h"

#include "kernels/numerics/error_bound.h"
#include "kernels/numerics/factor_solver.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"

namespace crout {

absl::StatusOr<SolvePlan> PlanSolve(const SolveOptions& options, const FactorSummary& factor,
                                    const PackedMatrix& rhs) {
  if (options.solver == nullptr) return absl::InvalidArgumentError("no solver is given");
  SolvePlan plan;
  CROUT_ASSIGN_OR_RETURN(plan.upload, MatrixBytes(rhs.rows, rhs.cols, rhs.dtype));
  CROUT_ASSIGN_OR_RETURN(const size_t doubles, MatrixBytes(rhs.rows, rhs.cols, DType::kFloat64));
  // Which of the two will solve is known only when the factor is, and what the first one answers.
  CROUT_ASSIGN_OR_RETURN(plan.solver, FactorSolver::Bytes(*options.solver, factor.factor_dtype,
                                                          rhs.rows, rhs.cols, options.fallback));
  plan.needs_residual = options.verify || options.wants_componentwise() || options.error_bound ||
                        options.max_refinement_steps > 0;
  plan.upload_is_rhs = rhs.dtype == DType::kFloat64 && rhs.layout == Layout::kColumnMajor;
  plan.rhs = plan.upload_is_rhs ? 0 : doubles;
  plan.solution = plan.needs_residual ? doubles : 0;
  plan.residual = plan.needs_residual ? doubles : 0;
  plan.scale = options.wants_componentwise() ? doubles : 0;
  plan.previous = options.max_refinement_steps > 0 ? doubles : 0;
  if (options.error_bound) {
    CROUT_ASSIGN_OR_RETURN(plan.bound, ForwardErrorBytes(rhs.rows));
  }
  ByteSum peak;
  peak.AddBuffer(plan.upload).AddBuffer(plan.rhs).AddBuffer(plan.solution).AddBuffer(plan.scale);
  peak.AddBuffer(plan.residual).AddBuffer(plan.previous).Add(plan.solver).AddBuffer(plan.bound);
  CROUT_ASSIGN_OR_RETURN(plan.bytes.peak, peak.total());
  return plan;
}

absl::StatusOr<JobBytes> SolveBytes(const SolveOptions& options, const FactorSummary& factor,
                                    PackedMatrix rhs_shape) {
  CROUT_ASSIGN_OR_RETURN(const SolvePlan plan, PlanSolve(options, factor, rhs_shape));
  return plan.bytes;
}

}  // namespace crout
