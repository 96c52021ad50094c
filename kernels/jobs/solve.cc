// SPDX-License-Identifier: Apache-2.0

#include "kernels/jobs/solve.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/execution_context.h"
#include "kernels/jobs/assess_solution.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/numerics/correction.h"
#include "kernels/numerics/error_bound.h"
#include "kernels/numerics/factor_solver.h"
#include "kernels/numerics/operands.h"
#include "kernels/numerics/refinement.h"
#include "kernels/numerics/residual_check.h"
#include "kernels/stop_requested.h"
#include "kernels/util/failpoint.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"
#include "kernels/util/strings.h"

namespace crout {
namespace {

// One Solve call. Owns the buffers that enqueued work uses.
class SolveJob {
 public:
  SolveJob(ExecutionContext& context, const SolvePlan& plan, const Factorization& factor,
           const SolverChoice& choice, const Float64FactorFunction& wider, Buffer&& upload)
      : context_(context),
        plan_(plan),
        options_(plan.options),
        make_float64_factor_(wider),
        factor_(&factor),
        matrix_(MakeKeptOperand(factor)),
        choice_(choice),
        packed_(plan.shape),
        buffers_(plan.buffers) {
    packed_.data = upload.data();
    buffers_.Give(plan.upload, std::move(upload));
  }

  absl::StatusOr<SolveSummary> Run(std::byte* out, StopRequested stop, KernelTimings& timings);

 private:
  absl::Status AllocateBuffers();
  absl::Status CreateSolver();
  absl::Status FirstSolve();
  absl::Status EnqueueScaledSolve();
  absl::Status CheckScaledRhs() const;
  // Solves again with the solver in reserve, if there is one and the answer is not accurate enough.
  absl::Status RetryFirstSolve();
  absl::Status Refine(StopRequested stop);
  // Corrects X until it is accurate, trying the available solvers and factors in turn.
  absl::Status CorrectSolution(StopRequested stop);
  absl::Status SolveAgain();
  absl::Status SwitchToFloat64Factor();
  absl::Status RoundToOutputType();
  absl::Status Deliver(std::byte* out);
  SolveSummary Summary() const;
  // Judges X as delivered.
  AccuracyWarnings Assess(const SolveSummary& summary, std::byte* out) const;

  MatrixOps& ops() { return context_.ops(); }
  AnyMatrix Columns(BufferPlan::Id id, DType dtype) const {
    return {buffers_[id].data(), dtype, packed_.rows, plan_.columns, packed_.rows};
  }
  AnyMatrix Vectors(BufferPlan::Id id) const { return Columns(id, plan_.vector_type); }
  AnyMatrix Rhs() const { return Vectors(plan_.rhs); }
  AnyMatrix Solution() const { return Vectors(plan_.solution); }
  CheckedSystem System() const;

  ExecutionContext& context_;
  const SolvePlan& plan_;
  const SolveOptions& options_;
  const Float64FactorFunction& make_float64_factor_;
  const Factorization* factor_;
  const std::unique_ptr<const Operand> matrix_;  // used only if the plan computes residuals
  SolverChoice choice_;
  PackedMatrix packed_;
  JobBuffers buffers_;
  std::optional<FactorSolver> solver_;
  std::optional<ResidualCheck> check_;  // set if the plan computes residuals
  double rhs_max_abs_ = 0;
  SolverFallback fallback_ = choice_.fallback;
  int refinement_steps_ = 0;
  int corrections_ = 0;
  double refactor_seconds_ = 0;  // already counted by the callback that made the wider factor
};

absl::Status SolveJob::AllocateBuffers() {
  CROUT_RETURN_IF_ERROR(buffers_.Allocate(context_.device().memory()));
  CROUT_RETURN_IF_ERROR(CreateSolver());
  if (plan_.needs_residual) check_.emplace(context_, System());
  return absl::OkStatus();
}

absl::Status SolveJob::CreateSolver() {
  // Determined here, because the factor may have been replaced by one in its matrix's precision.
  const bool lower = factor_->summary.factor_dtype != plan_.vector_type;
  CROUT_ASSIGN_OR_RETURN(
      solver_, FactorSolver::Create(context_, *factor_, *choice_.solver,
                                    lower ? plan_.lower_tolerance : options_.solver_tolerance,
                                    plan_.columns, choice_.fallback_solver));
  return absl::OkStatus();
}

CheckedSystem SolveJob::System() const {
  CheckedSystem system;
  system.a = matrix_.get();
  system.op = options_.op;
  system.x = Solution();
  system.b = Rhs();
  system.r = Vectors(plan_.residual);
  if (buffers_[plan_.scale]) system.w = Columns(plan_.scale, DType::kFloat64).As<double>();
  return system;
}

absl::Status SolveJob::FirstSolve() {
  const bool scaled = solver_->ScalesRhs(options_.op);
  CROUT_RETURN_IF_ERROR(ops().Import(packed_, Rhs()));
  CROUT_RETURN_IF_ERROR(scaled ? EnqueueScaledSolve()
                               : solver_->Apply(options_.op, Rhs(), Solution()));
  if (check_) CROUT_RETURN_IF_ERROR(check_->Enqueue());
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  CROUT_RETURN_IF_ERROR(scaled ? CheckScaledRhs()
                               : CheckFinite(context_.report().matrix, packed_, "right-hand side"));
  if (!scaled) rhs_max_abs_ = context_.report().matrix.max_abs;
  if (!check_) return absl::OkStatus();
  CROUT_RETURN_IF_ERROR(check_->Read());
  return RetryFirstSolve();
}

absl::Status SolveJob::RetryFirstSolve() {
  // Corrected solutions are judged after their correction.
  if (choice_.fallback_solver == nullptr || options_.max_corrections > 0) return absl::OkStatus();
  const FactorSummary& summary = factor_->summary;
  // The comparison is false for NaN.
  if (check_->errors().normwise <= AcceptedBackwardError(summary.factor_dtype, summary.n)) {
    return absl::OkStatus();
  }
  solver_->FallBack();
  fallback_ = SolverFallback::kBackwardError;
  CROUT_RETURN_IF_ERROR(solver_->Apply(options_.op, Rhs(), Solution()));
  return check_->Measure();
}

absl::Status SolveJob::EnqueueScaledSolve() {
  // Reads the statistics of B before those of the scaled B replace them.
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  const MatrixStats& stats = context_.report().matrix;
  CROUT_RETURN_IF_ERROR(CheckFinite(stats, packed_, "right-hand side"));
  rhs_max_abs_ = stats.max_abs;
  return solver_->SolveAndInspect(options_.op, Rhs(), Solution());
}

absl::Status SolveJob::CheckScaledRhs() const {
  // B is finite, so an Inf results from scaling.
  if (context_.report().matrix.first_non_finite < 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the right-hand side, whose largest entry has magnitude ", rhs_max_abs_,
      ", overflows when it is scaled like the equilibrated matrix. Scale the right-hand side"));
}

absl::Status SolveJob::Refine(StopRequested stop) {
  const RefinementLimits limits{.max_steps = options_.max_refinement_steps,
                                .tolerance = UnitRoundoff(packed_.dtype),
                                .componentwise = options_.refine_componentwise};
  CROUT_ASSIGN_OR_RETURN(const Refinement done, crout::Refine(context_, *check_, *solver_, limits,
                                                              Vectors(plan_.previous), stop));
  refinement_steps_ = done.corrections;
  return absl::OkStatus();
}

absl::Status SolveJob::SolveAgain() {
  CROUT_RETURN_IF_ERROR(solver_->Apply(options_.op, Rhs(), Solution()));
  return check_->Measure();
}

absl::Status SolveJob::SwitchToFloat64Factor() {
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  solver_.reset();  // its buffers were reserved only once
  Stopwatch watch;
  CROUT_ASSIGN_OR_RETURN(factor_, make_float64_factor_());
  refactor_seconds_ = watch.Lap();
  CROUT_RETURN_IF_ERROR(CheckUsable(factor_->summary));
  CROUT_ASSIGN_OR_RETURN(choice_, ChooseSolver(factor_->summary, options_, /*measured=*/true));
  fallback_ = choice_.fallback;
  return CreateSolver();
}

absl::Status SolveJob::CorrectSolution(StopRequested stop) {
  const int64_t n = packed_.rows;
  const GmresLimits limits{options_.max_corrections, plan_.restart, plan_.accuracy};
  const GmresMemory memory(buffers_[plan_.krylov].data(), n, plan_.columns, plan_.vector_type,
                           plan_.restart);
  bool widened = false;
  while (true) {
    CROUT_ASSIGN_OR_RETURN(const Correction correction,
                           Correct(context_, *check_, *solver_, limits, memory, stop));
    corrections_ += correction.iterations;
    if (check_->errors().normwise <= plan_.accuracy) return absl::OkStatus();
    if (choice_.fallback_solver != nullptr && fallback_ == SolverFallback::kNone) {
      solver_->FallBack();
      fallback_ = SolverFallback::kBackwardError;
    } else if (make_float64_factor_ != nullptr && !widened) {
      widened = true;
      CROUT_RETURN_IF_ERROR(SwitchToFloat64Factor());
    } else {
      return absl::OkStatus();
    }
    CROUT_RETURN_IF_ERROR(SolveAgain());
  }
}

absl::Status SolveJob::RoundToOutputType() {
  if (RealOf(packed_.dtype) == DType::kFloat64) return absl::OkStatus();
  // The upload is no longer needed, so the delivery buffer is free.
  const DType single = IsComplex(plan_.vector_type) ? DType::kComplex64 : DType::kFloat32;
  const AnyMatrix rounded = Columns(plan_.packed, single);
  CROUT_RETURN_IF_ERROR(ops().CopyScaled(Solution(), nullptr, nullptr, rounded));
  CROUT_RETURN_IF_ERROR(ops().CopyScaled(rounded, nullptr, nullptr, Solution()));
  return check_->Measure();
}

absl::Status SolveJob::Deliver(std::byte* out) {
  const std::byte* delivered = Solution().data;
  if (plan_.rhs != plan_.upload) {
    delivered = buffers_[plan_.packed].data();
    CROUT_RETURN_IF_ERROR(ops().Export(Solution(), plan_.delivered, buffers_[plan_.packed].data()));
  }
  CROUT_RETURN_IF_ERROR(ops().CopyToHost(delivered, out, plan_.delivered.bytes()));
  return context_.Synchronize();
}

SolveSummary SolveJob::Summary() const {
  SolveSummary summary;
  summary.solver = std::string(solver_->name());
  summary.fallback = fallback_;
  summary.refinement_steps = refinement_steps_;
  if (options_.max_corrections > 0) summary.corrections = corrections_;
  if (options_.verify) summary.backward_error = check_->errors().normwise;
  if (options_.needs_componentwise()) summary.componentwise_error = check_->errors().componentwise;
  return summary;
}

AccuracyWarnings SolveJob::Assess(const SolveSummary& summary, std::byte* out) const {
  const FactorSummary& factor = factor_->summary;
  SolveFigures figures;
  if (check_) {
    figures.backward_error = check_->errors().normwise;
    const DType rounded = UnitRoundoff(packed_.dtype) > UnitRoundoff(factor.factor_dtype)
                              ? packed_.dtype
                              : factor.factor_dtype;
    figures.accepted =
        options_.max_corrections > 0 ? plan_.accuracy : AcceptedBackwardError(rounded, factor.n);
  }
  figures.finite = std::isfinite(summary.componentwise_error.value_or(0)) &&
                   std::isfinite(summary.forward_error_bound.value_or(0));
  figures.matrix_norm = options_.op == Op::kNone ? factor.norm_inf : factor.norm_one;
  figures.rhs_max_abs = rhs_max_abs_;
  PackedMatrix delivered = plan_.delivered;
  delivered.data = out;
  return AssessSolution(&factor, figures, delivered);
}

absl::StatusOr<SolveSummary> SolveJob::Run(std::byte* out, StopRequested stop,
                                           KernelTimings& timings) {
  Stopwatch watch;
  SyncOnExit sync(context_);
  const StopScope scope(context_, stop);
  CROUT_RETURN_IF_ERROR(Failpoint("solve.run"));
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  CROUT_RETURN_IF_ERROR(AllocateBuffers());
  CROUT_RETURN_IF_ERROR(FirstSolve());
  timings.solve += watch.Lap();

  if (check_) {
    CROUT_RETURN_IF_ERROR(options_.max_corrections > 0 ? CorrectSolution(stop) : Refine(stop));
    CROUT_RETURN_IF_ERROR(RoundToOutputType());
  }
  SolveSummary summary = Summary();
  if (options_.error_bound) {
    CROUT_ASSIGN_OR_RETURN(
        summary.forward_error_bound,
        BoundForwardError(context_, check_->system(), *solver_, solver_->Error(), stop));
  }
  timings.refine += watch.Lap() - refactor_seconds_;

  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  CROUT_RETURN_IF_ERROR(Deliver(out));
  summary.accuracy_warnings = Assess(summary, out);
  timings.device_to_host += watch.Lap();
  sync.Dismiss();
  return summary;
}

absl::Status CheckArguments(const SolvePlan& plan, const Factorization& factor,
                            const TriangularSolver& solver, size_t upload_bytes) {
  const FactorSummary& summary = factor.summary;
  if (plan.shape.rows != summary.n) {
    return absl::FailedPreconditionError(
        absl::StrCat("right-hand side has ", plan.shape.rows, " rows; the factor has order ",
                     summary.n, ". Send a right-hand side with ", summary.n, " rows"));
  }
  CROUT_RETURN_IF_ERROR(
      CheckUpload(upload_bytes, plan.buffers.bytes(plan.upload), "right-hand side"));
  CROUT_RETURN_IF_ERROR(CheckUsable(summary));
  CROUT_RETURN_IF_ERROR(CheckSupports(solver, summary.unit_diagonal, summary.algorithm));
  CROUT_RETURN_IF_ERROR(CheckTolerance(solver, plan.options.solver_tolerance));
  return CheckMatrix(plan, summary, factor.has_matrix());
}

SolveSummary EmptySolve(const SolverChoice& choice, const SolveOptions& options) {
  SolveSummary summary;
  summary.solver = std::string(choice.solver->name());
  summary.fallback = choice.fallback;
  if (options.verify) summary.backward_error = 0;
  if (options.needs_componentwise()) summary.componentwise_error = 0;
  if (options.error_bound) summary.forward_error_bound = 0;
  return summary;
}

}  // namespace

absl::Status CheckMatrix(const SolvePlan& plan, const FactorSummary& factor, bool has_matrix) {
  if (!plan.needs_residual || has_matrix || factor.n == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "backward errors, refinement and error bounds need the matrix, which was not kept. Factor it "
      "again with keep_matrix, or solve without them");
}

absl::StatusOr<SolveSummary> Solve(ExecutionContext& context, const SolvePlan& plan,
                                   const Factorization& factor, Buffer upload, std::byte* out,
                                   StopRequested stop, KernelTimings& timings,
                                   const Float64FactorFunction& wider) {
  SyncOnExit sync(context);  // `upload` may still be arriving
  const SolveOptions& options = plan.options;
  // A singular factor is never prepared; report the singularity rather than missing preparation.
  SolverChoice choice{options.solver};
  if (factor.summary.info == 0) {
    CROUT_ASSIGN_OR_RETURN(choice, ChooseSolver(factor.summary, options, plan.needs_residual));
  }
  CROUT_RETURN_IF_ERROR(CheckArguments(plan, factor, *choice.solver, upload.size()));
  if (plan.shape.rows == 0 || plan.shape.cols == 0) return EmptySolve(choice, options);
  if (options.max_corrections > 0 && context.krylov_ops() == nullptr) {
    return absl::UnimplementedError("the device does not support iterative correction (GMRES)");
  }
  SolveJob job(context, plan, factor, choice, wider, std::move(upload));
  sync.Dismiss();  // Run synchronizes before the job's buffers are destroyed
  return job.Run(out, stop, timings);
}

absl::StatusOr<SolveSummary> Solve(ExecutionContext& context, const Factorization& factor,
                                   Buffer upload, PackedMatrix shape, const SolveOptions& options,
                                   std::byte* out, StopRequested stop, KernelTimings& timings) {
  SyncOnExit sync(context);  // also if planning fails
  CROUT_ASSIGN_OR_RETURN(const SolvePlan plan, PlanSolve(options, factor.summary, shape));
  sync.Dismiss();
  return Solve(context, plan, factor, std::move(upload), out, stop, timings);
}

}  // namespace crout
