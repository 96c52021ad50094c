// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>

#include "kernels/jobs/solve.h"
#include "kernels/numerics/error_bound.h"
#include "kernels/numerics/factor_solver.h"
#include "kernels/numerics/gmres.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// Returns null for a dense factor.
const Analysis* AnalysisOf(const FactorSummary& factor) {
  return factor.sparse ? factor.sparse->analysis.get() : nullptr;
}

// Solver tolerance of a low-precision factor whose answers are corrected. The first answer has a
// larger error only if the factor itself is hardly usable.
constexpr double kCorrectedTolerance = 0.01;

double LowerTolerance(const SolveOptions& options) {
  // The solves of the error bound are not corrected.
  const bool corrected = options.max_corrections > 0 && !options.error_bound;
  return corrected && options.solver_tolerance == 0 ? kCorrectedTolerance
                                                    : options.solver_tolerance;
}

absl::Status AddBuffers(const FactorSummary& factor, SolvePlan& plan) {
  const SolveOptions& options = plan.options;
  const PackedMatrix& rhs = plan.shape;
  BufferPlan& buffers = plan.buffers;
  CROUT_ASSIGN_OR_RETURN(const size_t upload, MatrixBytes(rhs.rows, rhs.cols, rhs.dtype));
  CROUT_ASSIGN_OR_RETURN(const size_t delivered,
                         MatrixBytes(rhs.rows, rhs.cols, plan.delivered.dtype));
  CROUT_ASSIGN_OR_RETURN(const size_t vectors,
                         MatrixBytes(rhs.rows, plan.columns, plan.vector_type));
  // Corrections may end with a wider factor.
  const DType widest = options.max_corrections > 0 ? plan.vector_type : factor.factor_dtype;
  const Analysis* const analysis = AnalysisOf(factor);
  CROUT_ASSIGN_OR_RETURN(const size_t wider,
                         FactorSolver::Bytes(*options.solver, widest, rhs.rows, plan.columns,
                                             options.fallback, analysis));
  // The factor and the first answer determine which of the two solvers runs.
  CROUT_ASSIGN_OR_RETURN(const size_t solver,
                         FactorSolver::Bytes(*options.solver, factor.factor_dtype, rhs.rows,
                                             plan.columns, options.fallback, analysis));
  const bool as_it_is = rhs.dtype == plan.vector_type && rhs.layout == Layout::kColumnMajor;
  plan.upload = buffers.Add("upload", BufferKind::kUpload, upload);
  plan.rhs = as_it_is ? plan.upload : buffers.Add("right-hand sides", vectors);
  plan.solution = plan.needs_residual ? buffers.Add("solution", vectors) : plan.rhs;
  plan.packed = delivered == upload ? plan.upload : buffers.Add("packed solution", delivered);
  plan.residual = buffers.Add("residual", plan.needs_residual ? vectors : 0);
  CROUT_ASSIGN_OR_RETURN(const size_t scale, MatrixBytes(rhs.rows, plan.columns, DType::kFloat64));
  plan.scale = buffers.Add("residual scale", options.needs_componentwise() ? scale : 0);
  plan.previous = buffers.Add("previous solution", options.max_refinement_steps > 0 ? vectors : 0);
  buffers.Add("solver", BufferKind::kPart, std::max(solver, wider));
  if (options.max_corrections > 0 && rhs.rows > 0 && plan.columns > 0) {
    plan.accuracy = std::sqrt(static_cast<double>(rhs.rows)) * UnitRoundoff(rhs.dtype);
    plan.restart = RestartFor(rhs.rows, plan.columns);
    CROUT_ASSIGN_OR_RETURN(const size_t krylov, GmresMemory::Bytes(rhs.rows, plan.columns,
                                                                   plan.vector_type, plan.restart));
    plan.krylov = buffers.Add("Krylov spaces", krylov);
  }
  if (options.error_bound) {
    CROUT_ASSIGN_OR_RETURN(const size_t bound, ForwardErrorBytes(factor.matrix_dtype, rhs.rows));
    buffers.Add("error bound", BufferKind::kPart, BlockBytes(bound));
  }
  buffers.Add("reply", BufferKind::kReply, delivered);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SolvePlan> PlanSolve(const SolveOptions& options, const FactorSummary& factor,
                                    PackedMatrix shape) {
  if (options.solver == nullptr) return absl::InvalidArgumentError("the options name no solver");
  SolvePlan plan;
  plan.options = options;
  plan.shape = shape;
  const bool complex = IsComplex(factor.factor_dtype);
  // For a real matrix both are equal; methods receive the usual one.
  if (!complex && options.op == Op::kConjugateTranspose) plan.options.op = Op::kTranspose;
  CROUT_ASSIGN_OR_RETURN(const SolutionShape solution, ShapeSolution(factor.factor_dtype, shape));
  plan.delivered = solution.delivered;
  plan.columns = solution.columns;
  plan.vector_type = WideOf(factor.factor_dtype);
  plan.lower_tolerance = LowerTolerance(options);
  plan.needs_residual = options.verify || options.needs_componentwise() || options.error_bound ||
                        options.max_refinement_steps > 0 || options.max_corrections > 0;
  CROUT_RETURN_IF_ERROR(AddBuffers(factor, plan));
  CROUT_ASSIGN_OR_RETURN(plan.bytes, plan.buffers.Sum());
  const Analysis* const analysis = AnalysisOf(factor);
  plan.seconds =
      analysis != nullptr
          ? options.solver->PredictSparseSeconds(*analysis, factor.factor_dtype, plan.columns)
          : options.solver->PredictSeconds(factor.factor_dtype, factor.n, plan.columns);
  return plan;
}

}  // namespace crout
