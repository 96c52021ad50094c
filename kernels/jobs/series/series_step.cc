// SPDX-License-Identifier: Apache-2.0

#include "kernels/jobs/series/series_step.h"

#include <cmath>
#include <memory>
#include <utility>

#include "kernels/execution_context.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/jobs/series/series_matrix.h"
#include "kernels/jobs/series/series_solution.h"
#include "kernels/jobs/solve.h"
#include "kernels/krylov_ops.h"
#include "kernels/numerics/correction.h"
#include "kernels/numerics/factor_solver.h"
#include "kernels/numerics/gmres.h"
#include "kernels/numerics/operands.h"
#include "kernels/numerics/residual_check.h"
#include "kernels/numerics/updated_inverse.h"
#include "kernels/sparse_ops.h"
#include "kernels/stop_requested.h"
#include "kernels/util/failpoint.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"

namespace crout {
namespace {

// Iteration limit with a factor of A itself: if these do not suffice, more would not.
constexpr int kNewIterations = 20;
// Solver tolerance for answers that are corrected afterwards. Not used with the factor of A itself,
// because then one answer is often enough.
constexpr double kOldTolerance = 1e-9;

// Returns true if the method pivots, so that a zero pivot is a property of the matrix.
bool Pivots(const SeriesStepPlan& plan) {
  if (plan.sparse) return true;
  const FactorizeOptions& options = plan.options.factor;
  const std::optional<PivotCriterion>& asked = options.parameters.pivoting;
  return (asked ? asked->rule : options.algorithm->traits().pivoting) != PivotRule::kNone;
}

// One SolveSeriesStep call. Owns the buffers that enqueued work uses.
class SeriesStepJob {
 public:
  SeriesStepJob(ExecutionContext& context, const SeriesStepPlan& plan, const SeriesStart& start,
                SparseGrowth* growth, SeriesUploads&& uploads)
      : context_(context),
        plan_(plan),
        start_(start),
        growth_(growth),
        kept_(plan.matrix.change ? nullptr : LastMatrix(plan, start)),
        buffers_(plan.buffers),
        solution_(context, plan, buffers_, result_.summary) {
    buffers_.Give(plan.matrix_upload, std::move(uploads.matrix));
    buffers_.Give(plan.rhs_upload, std::move(uploads.rhs));
    buffers_.Give(plan.x0_upload, std::move(uploads.x0));
  }

  absl::StatusOr<SeriesStepResult> Run(std::byte* out, StopRequested stop, KernelTimings& timings);

 private:
  // Returns A of this step, wherever it is stored.
  std::unique_ptr<const Operand> MakeOperand() const;
  absl::StatusOr<SolverChoice> Choose(const SolverPair& pair, const Factorization& factor) const;

  absl::Status TryOldFactor(StopRequested stop);
  // Completes the old factor's update.
  absl::Status UpdateFactor(InverseOperator& factor, Correction* done);
  absl::Status FactorNewMatrix(StopRequested stop, KernelTimings& timings);
  absl::Status TryNewFactor(StopRequested stop);
  void StoreForNextStep();

  MatrixOps& ops() { return context_.ops(); }

  ExecutionContext& context_;
  const SeriesStepPlan& plan_;
  const SeriesStart start_;
  SparseGrowth* const growth_;
  const Factorization* const kept_;  // owns A; null if A arrived or was changed
  JobBuffers buffers_;
  FactorSummary matrix_;  // size, type and norms of A
  SeriesStepResult result_;
  SeriesSolution solution_;
};

std::unique_ptr<const Operand> SeriesStepJob::MakeOperand() const {
  if (result_.factor) return MakeKeptOperand(*result_.factor);
  if (kept_ != nullptr) return MakeKeptOperand(*kept_);
  std::byte* const data = buffers_[plan_.a].data();
  const DType dtype = matrix_.matrix_dtype;
  if (plan_.matrix.nonzeros) {
    const AnySparse a{data, dtype, plan_.rhs.rows, *plan_.matrix.nonzeros};
    return std::make_unique<SparseOperand>(a, matrix_.norm_one, matrix_.norm_inf);
  }
  const AnyMatrix a{data, dtype, plan_.rhs.rows, plan_.rhs.rows, plan_.rhs.rows};
  return std::make_unique<DenseOperand>(a, matrix_.norm_one, matrix_.norm_inf);
}

absl::StatusOr<SolverChoice> SeriesStepJob::Choose(const SolverPair& pair,
                                                   const Factorization& factor) const {
  SolveOptions options;
  options.solver = pair.solver;
  options.fallback = pair.fallback;
  options.op = plan_.options.op;
  return ChooseSolver(factor.summary, options, /*measured=*/true);
}

absl::Status SeriesStepJob::TryOldFactor(StopRequested stop) {
  const SeriesStepOptions& options = plan_.options;
  SeriesStepSummary& summary = result_.summary;
  const Factorization& old = *start_.factor;
  CROUT_ASSIGN_OR_RETURN(const SolverChoice choice, Choose(options.with_old, old));
  const double tolerance = plan_.matrix.source == SeriesSource::kFactor ? 0 : kOldTolerance;
  CROUT_ASSIGN_OR_RETURN(FactorSolver solver, FactorSolver::Create(context_, old, *choice.solver,
                                                                   tolerance, plan_.old_columns()));
  const std::unique_ptr<const Operand> a = MakeOperand();
  ResidualCheck check(context_, solution_.System(*a));
  SyncOnExit sync(context_);  // the solver's buffers may be in use, also on an error
  std::optional<UpdatedInverse> updated;
  Correction done;
  if (plan_.rank > 0) {
    CROUT_RETURN_IF_ERROR(UpdateFactor(solver, &done));
    updated.emplace(context_, solver, StepUpdate(plan_, start_, buffers_),
                    buffers_[plan_.update_work].data());
  }
  InverseOperator& inverse = updated ? static_cast<InverseOperator&>(*updated) : solver;
  CROUT_ASSIGN_OR_RETURN(const bool started, solution_.UseInitialGuess(check, start_.solution));
  double gain = 0;  // unknown
  if (!started) {
    CROUT_RETURN_IF_ERROR(solution_.Apply(inverse, &done));
    CROUT_ASSIGN_OR_RETURN(gain, solution_.MeasureInitialGain(check));
  }
  const auto left = [&] {
    return GmresLimits{.max_iterations = options.max_iterations - done.iterations,
                       .restart = plan_.restart,
                       .tolerance = plan_.accuracy,
                       .max_cost = options.max_cost - done.cost};
  };
  GmresLimits limits = left();
  limits.max_remaining = options.max_remaining;
  limits.min_iterations = options.min_iterations - done.iterations;
  limits.known_gain = gain;
  CROUT_RETURN_IF_ERROR(solution_.Improve(check, inverse, limits, &done, stop));
  CROUT_RETURN_IF_ERROR(solution_.Settle(check, inverse, left(), &done, stop));
  sync.Dismiss();
  summary.old_iterations = done.iterations;
  summary.old_cost = done.cost;
  summary.solver = std::string(solver.name());
  summary.solved = std::isfinite(summary.backward_error);
  return absl::OkStatus();
}

absl::Status SeriesStepJob::UpdateFactor(InverseOperator& factor, Correction* done) {
  result_.summary.update_rank = plan_.rank;
  if (!plan_.matrix.change) return absl::OkStatus();
  AddSolve(done);
  // If A is singular, GMRES detects it.
  return CompleteUpdate(context_, factor, plan_.matrix.change->size,
                        StepUpdate(plan_, start_, buffers_))
      .status();
}

absl::Status SeriesStepJob::FactorNewMatrix(StopRequested stop, KernelTimings& timings) {
  if (kept_ != nullptr) {
    const FactorParts& kept = kept_->parts;
    const Buffer& a = plan_.matrix.nonzeros ? kept[kSparseMatrixPart] : kept[kMatrixPart];
    CROUT_RETURN_IF_ERROR(ops().CopyOnDevice(a.data(), buffers_[plan_.a].data(), a.size()));
  }
  result_.summary.update_rank = 0;
  Buffer a = buffers_.Take(plan_.a);
  if (!plan_.sparse) {
    CROUT_ASSIGN_OR_RETURN(result_.factor,
                           Factorize(context_, *plan_.factor, std::move(a), stop, timings));
    return absl::OkStatus();
  }
  SparseFactorizePlan plan = *plan_.sparse;
  plan.options.last = start_.factor;
  CROUT_ASSIGN_OR_RETURN(result_.factor,
                         FactorizeSparse(context_, plan, std::move(a), stop, timings, growth_));
  return absl::OkStatus();
}

absl::Status SeriesStepJob::TryNewFactor(StopRequested stop) {
  const SeriesStepOptions& options = plan_.options;
  SeriesStepSummary& summary = result_.summary;
  const Factorization& factor = *result_.factor;
  SolverPair solvers = options.with_new;
  // A method that replaced the planned one has its own solver.
  if (plan_.sparse && factor.summary.algorithm != plan_.sparse->options.method.lu->name()) {
    solvers.solver = plan_.sparse->options.otherwise->solver;
  }
  CROUT_ASSIGN_OR_RETURN(const SolverChoice choice, Choose(solvers, factor));
  CROUT_ASSIGN_OR_RETURN(FactorSolver inverse,
                         FactorSolver::Create(context_, factor, *choice.solver, /*tolerance=*/0,
                                              plan_.columns, choice.fallback_solver));
  const std::unique_ptr<const Operand> a = MakeOperand();
  ResidualCheck check(context_, solution_.System(*a));
  SyncOnExit sync(context_);
  const GmresLimits limits{kNewIterations, plan_.restart, plan_.accuracy};
  Correction done;
  for (bool again = true; again;) {
    CROUT_RETURN_IF_ERROR(solution_.Apply(inverse, &done));
    CROUT_RETURN_IF_ERROR(check.Measure());
    CROUT_RETURN_IF_ERROR(solution_.Improve(check, inverse, limits, &done, stop));
    again = !plan_.is_accurate(check.errors().normwise) && choice.fallback_solver != nullptr &&
            inverse.name() == choice.solver->traits().name;
    if (again) inverse.FallBack();
  }
  CROUT_RETURN_IF_ERROR(solution_.Settle(check, inverse, limits, &done, stop));
  sync.Dismiss();
  summary.new_iterations = done.iterations;
  summary.solver = std::string(inverse.name());
  summary.solved = true;
  return absl::OkStatus();
}

void SeriesStepJob::StoreForNextStep() {
  const auto keep = [&](std::string_view name, PartKind kind, BufferPlan::Id id) {
    Factorization kept;
    kept.summary = matrix_;
    kept.parts.Add(name, kind, buffers_.Take(id));
    return kept;
  };
  const std::string_view matrix = plan_.matrix.nonzeros ? kSparseMatrixPart : kMatrixPart;
  if (!result_.factor && kept_ == nullptr) {
    result_.matrix = keep(matrix, PartKind::kOperand, plan_.a);
    result_.matrix->parts.Add(kUpdatePart, PartKind::kPrepared, buffers_.Take(plan_.update));
  } else if (kept_ == nullptr && result_.factor->summary.info > 0) {
    // The factor is not kept, so a later change of this matrix needs the matrix on its own.
    result_.matrix.emplace();
    result_.matrix->summary = matrix_;
    result_.matrix->parts.Add(matrix, PartKind::kOperand, result_.factor->parts.Take(matrix));
  }
  if (result_.summary.solved && std::isfinite(result_.summary.backward_error)) {
    result_.solution = keep(kSolutionPart, PartKind::kSolution, plan_.x);
  }
}

absl::StatusOr<SeriesStepResult> SeriesStepJob::Run(std::byte* out, StopRequested stop,
                                                    KernelTimings& timings) {
  Stopwatch watch;
  SyncOnExit sync(context_);
  const StopScope scope(context_, stop);
  CROUT_RETURN_IF_ERROR(Failpoint("series.step"));
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  MemoryResource& memory = context_.device().memory();
  CROUT_RETURN_IF_ERROR(buffers_.Allocate(memory, /*phase=*/0));
  CROUT_ASSIGN_OR_RETURN(matrix_, ReadSeriesMatrix(context_, plan_, start_, buffers_));
  if (plan_.sparse) {
    SparseSummary& sparse = matrix_.sparse.emplace();
    sparse.analysis = plan_.sparse->analysis;
    sparse.workspace = plan_.sparse->cached_workspace();
  }
  CROUT_RETURN_IF_ERROR(solution_.ReadRhs());
  CROUT_RETURN_IF_ERROR(solution_.ReadInitialGuess());
  timings.solve += watch.Lap();
  SeriesStepSummary& summary = result_.summary;
  if (start_.factor != nullptr && plan_.options.max_iterations > 0) {
    CROUT_RETURN_IF_ERROR(TryOldFactor(stop));
  }
  summary.old_seconds = watch.Lap();
  timings.solve += summary.old_seconds;
  if (plan_.may_factor() && !solution_.IsAccepted()) {
    CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
    CROUT_RETURN_IF_ERROR(buffers_.Allocate(memory, /*phase=*/1));
    CROUT_RETURN_IF_ERROR(FactorNewMatrix(stop, timings));
    summary.new_seconds = watch.Lap();  // not added to `timings`: Factorize adds its own time
    if (result_.factor->summary.info == 0) {
      CROUT_RETURN_IF_ERROR(TryNewFactor(stop));
    } else if (Pivots(plan_)) {
      summary.solved = false;  // discards any X found with the old factor
    }
    const double solving = watch.Lap();
    summary.new_seconds += solving;
    timings.solve += solving;
  }
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  if (summary.solved) CROUT_RETURN_IF_ERROR(solution_.Deliver(*MakeOperand(), out));
  summary.accurate = summary.solved && plan_.is_accurate(summary.backward_error);
  // A right-hand side without a component along A's null space hides the singularity.
  if (result_.factor) summary.nearly_singular |= result_.factor->summary.is_nearly_singular();
  timings.device_to_host += watch.Lap();
  StoreForNextStep();
  sync.Dismiss();
  return std::move(result_);
}

}  // namespace

absl::StatusOr<SeriesStepResult> SolveSeriesStep(ExecutionContext& context,
                                                 const SeriesStepPlan& plan,
                                                 const SeriesStart& start, SeriesUploads uploads,
                                                 std::byte* out, StopRequested stop,
                                                 KernelTimings& timings, SparseGrowth* growth) {
  SyncOnExit sync(context);  // the uploads may still be arriving
  CROUT_RETURN_IF_ERROR(
      CheckUpload(uploads.matrix.size(), plan.buffers.bytes(plan.matrix_upload), "matrix"));
  CROUT_RETURN_IF_ERROR(
      CheckUpload(uploads.rhs.size(), plan.buffers.bytes(plan.rhs_upload), "right-hand side"));
  CROUT_RETURN_IF_ERROR(
      CheckUpload(uploads.x0.size(), plan.buffers.bytes(plan.x0_upload), "start"));
  CROUT_RETURN_IF_ERROR(CheckLastMatrix(plan, start));
  if (plan.matrix.nonzeros && context.sparse_ops() == nullptr) {
    return absl::UnimplementedError(
        "the device does not support sparse matrices. Use another device, or send a dense matrix");
  }
  if (context.krylov_ops() == nullptr) {
    return absl::UnimplementedError("the device does not support iterative correction (GMRES)");
  }
  SeriesStepJob job(context, plan, start, growth, std::move(uploads));
  sync.Dismiss();  // Run synchronizes before the job's buffers are destroyed
  return job.Run(out, stop, timings);
}

}  // namespace crout
