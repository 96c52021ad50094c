#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/factorization.h"
#include "kernels/jobs/cancellation.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/jobs/solve_plan.h"
#include "kernels/jobs/solver_choice.h"
#include "kernels/jobs/sync_on_exit.h"
#include "kernels/numerics/dense_operand.h"
#include "kernels/numerics/error_bound.h"
#include "kernels/numerics/factor_solver.h"
#include "kernels/numerics/refinement.h"
#include "kernels/numerics/residual_check.h"
#include "kernels/util/failpoint.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"
#include "kernels/util/strings.h"

namespace crout {
namespace {

// A as it arrived: the matrix that was kept with its factor.
DenseOperand KeptMatrix(const Factorization& factor) {
  const FactorSummary& summary = factor.summary;
  const int64_t n = summary.n;
  return {{factor.storage.matrix.data(), summary.matrix_dtype, n, n, n},
          summary.norm_one,
          summary.norm_inf};
}

// One Solve call. Its members are the buffers that enqueued work uses.
class SolveJob {
 public:
  SolveJob(ExecutionContext& context, const Factorization& factor, Buffer upload,
           const PackedMatrix& shape, const SolverChoice& choice, const SolveOptions& options,
           const SolvePlan& plan)
      : context_(context),
        factor_(factor),
        matrix_(KeptMatrix(factor)),
        choice_(choice),
        options_(options),
        plan_(plan),
        packed_(shape),
        upload_(std::move(upload)) {
    packed_.data = upload_.data();
  }

  absl::StatusOr<SolveSummary> Run(std::byte* out, StopRequested stop, KernelTimings& timings);

 private:
  absl::Status AllocateBuffers();
  absl::Status FirstSolve();
  absl::Status EnqueueScaledSolve();
  absl::Status CheckScaledRhs() const;
  // Solves again where the answer falls short and another solver is in reserve.
  absl::Status MendFirstSolve();
  absl::Status Refine(StopRequested stop);
  absl::Status RoundToDelivered();
  absl::Status Deliver(std::byte* out);
  SolveSummary Summary() const;

  MatrixOps& ops() { return context_.ops(); }
  MatrixView<double> Doubles(const Buffer& buffer) const {
    return {buffer.as<double>(), packed_.rows, packed_.cols, packed_.rows};
  }
  MatrixView<double> Rhs() const { return Doubles(plan_.upload_is_rhs ? upload_ : rhs_); }
  MatrixView<double> Solution() const { return plan_.needs_residual ? Doubles(solution_) : Rhs(); }
  CheckedSystem System() const;

  ExecutionContext& context_;
  const Factorization& factor_;
  const DenseOperand matrix_;  // read only where the plan has a residual
  const SolverChoice choice_;
  const SolveOptions& options_;
  const SolvePlan& plan_;
  PackedMatrix packed_;
  Buffer upload_;
  Buffer rhs_;
  Buffer solution_;
  Buffer residual_;
  Buffer scale_;
  Buffer previous_;
  std::optional<FactorSolver> solver_;
  std::optional<ResidualCheck> check_;  // where the plan has a residual
  double rhs_max_abs_ = 0;
  SolverFallback fallback_ = choice_.fallback;
  int refinement_steps_ = 0;
};

absl::Status SolveJob::AllocateBuffers() {
  MemoryResource& memory = context_.device().memory();
  CROUT_ASSIGN_OR_RETURN(rhs_, memory.Allocate(plan_.rhs));
  CROUT_ASSIGN_OR_RETURN(solution_, memory.Allocate(plan_.solution));
  CROUT_ASSIGN_OR_RETURN(residual_, memory.Allocate(plan_.residual));
  CROUT_ASSIGN_OR_RETURN(scale_, memory.Allocate(plan_.scale));
  CROUT_ASSIGN_OR_RETURN(previous_, memory.Allocate(plan_.previous));
  CROUT_ASSIGN_OR_RETURN(
      solver_, FactorSolver::Create(context_, factor_, *choice_.solver, options_.solver_tolerance,
                                    packed_.cols, choice_.in_reserve));
  if (plan_.needs_residual) check_.emplace(context_, System());
  return absl::OkStatus();
}

CheckedSystem SolveJob::System() const {
  CheckedSystem system;
  system.a = &matrix_;
  system.op = options_.op;
  system.x = Solution();
  system.b = Rhs();
  system.r = Doubles(residual_);
  if (scale_) system.w = Doubles(scale_);
  return system;
}

absl::Status SolveJob::FirstSolve() {
  const bool scaled = solver_->ScalesRhs(options_.op);
  CROUT_RETURN_IF_ERROR(ops().Import(packed_, AsAny(Rhs())));
  CROUT_RETURN_IF_ERROR(scaled ? EnqueueScaledSolve()
                               : solver_->Apply(options_.op, Rhs(), Solution()));
  if (check_) CROUT_RETURN_IF_ERROR(check_->Enqueue());
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  CROUT_RETURN_IF_ERROR(scaled ? CheckScaledRhs()
                               : CheckFinite(context_.report().matrix, packed_, "right-hand side"));
  if (!check_) return absl::OkStatus();
  CROUT_RETURN_IF_ERROR(check_->Read());
  return MendFirstSolve();
}

absl::Status SolveJob::MendFirstSolve() {
  if (choice_.in_reserve == nullptr) return absl::OkStatus();
  const FactorSummary& summary = factor_.summary;
  // A NaN is not below either.
  if (check_->errors().normwise <= AcceptedBackwardError(summary.factor_dtype, summary.n)) {
    return absl::OkStatus();
  }
  solver_->FallBack();
  fallback_ = SolverFallback::kBackwardError;
  CROUT_RETURN_IF_ERROR(solver_->Apply(options_.op, Rhs(), Solution()));
  return check_->Measure();
}

absl::Status SolveJob::EnqueueScaledSolve() {
  // The statistics of B, before those of the scaled B take their place.
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  const MatrixStats& stats = context_.report().matrix;
  CROUT_RETURN_IF_ERROR(CheckFinite(stats, packed_, "right-hand side"));
  rhs_max_abs_ = stats.max_abs;
  return solver_->SolveAndInspect(options_.op, Rhs(), Solution());
}

absl::Status SolveJob::CheckScaledRhs() const {
  // B is finite: only scaling can have made an Inf.
  if (context_.report().matrix.first_non_finite < 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("right-hand side, whose largest entry is of magnitude ", rhs_max_abs_,
                   ", overflows when it is equilibrated as the factor is"));
}

absl::Status SolveJob::Refine(StopRequested stop) {
  const RefinementLimits limits{.max_steps = options_.max_refinement_steps,
                                .enough = UnitRoundoff(packed_.dtype),
                                .componentwise = options_.refine_componentwise};
  CROUT_ASSIGN_OR_RETURN(refinement_steps_, crout::Refine(context_, *check_, *solver_, limits,
                                                          Doubles(previous_), stop));
  return absl::OkStatus();
}

absl::Status SolveJob::RoundToDelivered() {
  if (packed_.dtype == DType::kFloat64) return absl::OkStatus();
  // The upload has been read: room for X as it will be delivered.
  const AnyMatrix rounded{upload_.data(), packed_.dtype, packed_.rows, packed_.cols, packed_.rows};
  CROUT_RETURN_IF_ERROR(ops().CopyScaled(AsAny(Solution()), nullptr, nullptr, rounded));
  CROUT_RETURN_IF_ERROR(ops().CopyScaled(rounded, nullptr, nullptr, AsAny(Solution())));
  return check_->Measure();
}

absl::Status SolveJob::Deliver(std::byte* out) {
  const std::byte* delivered = reinterpret_cast<const std::byte*>(Solution().data);
  if (!plan_.upload_is_rhs) {
    CROUT_RETURN_IF_ERROR(ops().Export(AsAny(Solution()), packed_, upload_.data()));
    delivered = upload_.data();
  }
  CROUT_RETURN_IF_ERROR(ops().CopyToHost(delivered, out, plan_.upload));
  return context_.Synchronize();
}

SolveSummary SolveJob::Summary() const {
  SolveSummary summary;
  summary.solver = std::string(solver_->name());
  summary.fallback = fallback_;
  summary.refinement_steps = refinement_steps_;
  if (options_.verify) summary.backward_error = check_->errors().normwise;
  if (options_.wants_componentwise()) summary.componentwise_error = check_->errors().componentwise;
  return summary;
}

absl::StatusOr<SolveSummary> SolveJob::Run(std::byte* out, StopRequested stop,
                                           KernelTimings& timings) {
  Stopwatch watch;
  SyncOnExit sync(context_);
  CROUT_RETURN_IF_ERROR(Failpoint("solve.run"));
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  CROUT_RETURN_IF_ERROR(AllocateBuffers());
  CROUT_RETURN_IF_ERROR(FirstSolve());
  timings.solve += watch.Lap();

  if (check_) {
    CROUT_RETURN_IF_ERROR(Refine(stop));
    CROUT_RETURN_IF_ERROR(RoundToDelivered());
  }
  SolveSummary summary = Summary();
  if (options_.error_bound) {
    CROUT_ASSIGN_OR_RETURN(
        summary.forward_error_bound,
        BoundForwardError(context_, check_->system(), *solver_, solver_->RelativeError(), stop));
  }
  timings.refine += watch.Lap();

  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  CROUT_RETURN_IF_ERROR(Deliver(out));
  timings.device_to_host += watch.Lap();
  sync.Dismiss();
  return summary;
}

absl::Status CheckArguments(const Factorization& factor, const PackedMatrix& shape,
                            size_t upload_bytes, const TriangularSolver& solver,
                            const SolveOptions& options, const SolvePlan& plan) {
  const FactorSummary& summary = factor.summary;
  if (shape.rows != summary.n) {
    return absl::FailedPreconditionError(absl::StrCat("right-hand side has ", shape.rows,
                                                      " rows, the factor is of order ", summary.n));
  }
  if (upload_bytes != plan.upload) {
    return absl::InvalidArgumentError(
        absl::StrCat("right-hand side has ", upload_bytes, " bytes, its shape ", plan.upload));
  }
  CROUT_RETURN_IF_ERROR(CheckUsable(summary));
  CROUT_RETURN_IF_ERROR(CheckSupports(solver, summary.unit_diagonal, summary.algorithm));
  CROUT_RETURN_IF_ERROR(CheckTolerance(solver, options.solver_tolerance));
  if (plan.needs_residual && summary.n > 0 && !factor.storage.matrix) {
    return absl::FailedPreconditionError(
        "backward errors, refinement and error bounds need the matrix, which was not kept");
  }
  return absl::OkStatus();
}

SolveSummary EmptySolve(const SolverChoice& choice, const SolveOptions& options) {
  SolveSummary summary;
  summary.solver = std::string(choice.solver->name());
  summary.fallback = choice.fallback;
  if (options.verify) summary.backward_error = 0;
  if (options.wants_componentwise()) summary.componentwise_error = 0;
  if (options.error_bound) summary.forward_error_bound = 0;
  return summary;
}

}  // namespace

absl::StatusOr<SolveSummary> Solve(ExecutionContext& context, const Factorization& factor,
                                   Buffer upload, PackedMatrix shape, const SolveOptions& options,
                                   std::byte* out, StopRequested stop, KernelTimings& timings) {
  SyncOnExit sync(context);  // `upload` may still be arriving.
  CROUT_ASSIGN_OR_RETURN(const SolvePlan plan, PlanSolve(options, factor.summary, shape));
  // A singular factor was not prepared: that it is singular says more.
  SolverChoice choice{options.solver};
  if (factor.summary.info == 0) {
    CROUT_ASSIGN_OR_RETURN(choice, ChooseSolver(factor.summary, options, plan.needs_residual));
  }
  CROUT_RETURN_IF_ERROR(
      CheckArguments(factor, shape, upload.size(), *choice.solver, options, plan));
  if (shape.rows == 0 || shape.cols == 0) return EmptySolve(choice, options);
  SolveJob job(context, factor, std::move(upload), shape, choice, options, plan);
  sync.Dismiss();  // Run has its own, before the job's buffers are destroyed.
  return job.Run(out, stop, timings);
}

}  // namespace crout
