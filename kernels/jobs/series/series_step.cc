// SPDX-License-Identifier: Apache-2.0

#include "kernels/jobs/series/series_step.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/execution_context.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/jobs/series/series_matrix.h"
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
// Smallest product of amplification and backward error, an indicator of X's relative error, at
// which X is doubtful.
constexpr double kDoubtfulError = 0.01;
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

// Counts a solve with a factor besides the corrections.
void AddSolve(Correction* done) {
  ++done->iterations;
  ++done->cost;
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
        n_(plan.rhs.rows),
        packed_rhs_(plan.rhs),
        buffers_(plan.buffers) {
    packed_rhs_.data = uploads.rhs.data();
    buffers_.Give(plan.matrix_upload, std::move(uploads.matrix));
    buffers_.Give(plan.rhs_upload, std::move(uploads.rhs));
    buffers_.Give(plan.x0_upload, std::move(uploads.x0));
  }

  absl::StatusOr<SeriesStepResult> Run(std::byte* out, StopRequested stop, KernelTimings& timings);

 private:
  absl::Status ReadRhs();
  // X := the initial guess that arrives, if one does.
  absl::Status ReadStart();
  // Returns A of this step, wherever it is stored.
  std::unique_ptr<const Operand> MakeOperand() const;
  CheckedSystem System(const Operand& a) const;
  // Computes X's residual and the largest modulus in each of its columns. The caller must still
  // call check.Read().
  absl::Status MeasureWithMaxima(ResidualCheck& check, std::vector<double>* residual);
  // X := the initial guess, received or from the last step, and measures it. Columns whose residual
  // is not smaller than that of 0 are set to 0. Returns false if there is no usable guess.
  absl::StatusOr<bool> TakeStart(ResidualCheck& check);
  // Measures X, the old factor applied to B, and returns the factor by which it reduced the
  // residual of 0. Returns 0 for several columns, whose gains do not predict the remaining errors.
  absl::StatusOr<double> MeasureInitialGain(ResidualCheck& check);
  absl::StatusOr<SolverChoice> Choose(const SolverPair& pair, const Factorization& factor) const;

  absl::Status TryOldFactor(StopRequested stop);
  // Completes the old factor's update.
  absl::Status UpdateFactor(InverseOperator& factor, Correction* done);
  absl::Status FactorNewMatrix(StopRequested stop, KernelTimings& timings);
  absl::Status TryNewFactor(StopRequested stop);
  // Improves X with M, an approximate inverse of A, until it is accurate or further work does not
  // help.
  absl::Status Improve(ResidualCheck& check, InverseOperator& inverse, const GmresLimits& limits,
                       Correction* done, StopRequested stop);
  // Assesses X. If X is as accurate as required but still in doubt, the required accuracy is too
  // low to decide: improves X to float64's accuracy within the other limits and assesses it again.
  absl::Status Settle(ResidualCheck& check, InverseOperator& inverse, GmresLimits limits,
                      Correction* done, StopRequested stop);
  // Fills the summary's figures of X.
  absl::Status Assess(const ResidualCheck& check);
  // Returns true if the current X is acceptable.
  bool IsSolutionAccepted() const;
  absl::Status RoundToOutputType();
  absl::Status Deliver(std::byte* out);
  void StoreForNextStep();

  MatrixOps& ops() { return context_.ops(); }
  AnyMatrix Vectors(BufferPlan::Id id) const { return Columns(id, plan_.vector_type); }
  AnyMatrix Columns(BufferPlan::Id id, DType dtype) const {
    return {buffers_[id].data(), dtype, n_, plan_.columns, n_};
  }
  GmresMemory Krylov() const {
    return {buffers_[plan_.krylov].data(), n_, plan_.columns, plan_.vector_type, plan_.restart};
  }
  bool accurate(double error) const { return error <= plan_.accuracy; }

  ExecutionContext& context_;
  const SeriesStepPlan& plan_;
  const SeriesStart start_;
  SparseGrowth* const growth_;
  const Factorization* const kept_;  // owns A; null if A arrived or was changed
  const int64_t n_;
  PackedMatrix packed_rhs_;
  JobBuffers buffers_;
  FactorSummary matrix_;         // size, type and norms of A
  std::vector<double> rhs_max_;  // largest modulus in each column of B
  std::vector<double> keep_;     // 0 for columns whose initial guess is not used, otherwise 1
  SeriesStepResult result_;
};

absl::Status SeriesStepJob::ReadRhs() {
  const GmresMemory memory = Krylov();
  rhs_max_.resize(plan_.columns);
  CROUT_RETURN_IF_ERROR(ops().Import(packed_rhs_, Vectors(plan_.b)));
  const bool one = plan_.columns == 1;  // then Import's statistics suffice
  if (!one) {
    CROUT_RETURN_IF_ERROR(context_.krylov_ops()->ColumnMaxAbs(Vectors(plan_.b), memory.rhs_max));
    CROUT_RETURN_IF_ERROR(
        ops().CopyToHost(memory.rhs_max, rhs_max_.data(), rhs_max_.size() * sizeof(double)));
  }
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  const MatrixStats& stats = context_.report().matrix;
  if (one) rhs_max_[0] = stats.max_abs;
  return CheckFinite(stats, packed_rhs_, "right-hand side");
}

absl::Status SeriesStepJob::ReadStart() {
  if (!plan_.x0) return absl::OkStatus();
  PackedMatrix packed = *plan_.x0;
  packed.data = buffers_[plan_.x0_upload].data();
  CROUT_RETURN_IF_ERROR(ops().Import(packed, Vectors(plan_.x)));
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  if (plan_.x0_upload != plan_.x) buffers_.Take(plan_.x0_upload);
  return CheckFinite(context_.report().matrix, packed, "start");
}

std::unique_ptr<const Operand> SeriesStepJob::MakeOperand() const {
  if (result_.factor) return MakeKeptOperand(*result_.factor);
  if (kept_ != nullptr) return MakeKeptOperand(*kept_);
  std::byte* const data = buffers_[plan_.a].data();
  const DType dtype = matrix_.matrix_dtype;
  if (plan_.matrix.nonzeros) {
    const AnySparse a{data, dtype, n_, *plan_.matrix.nonzeros};
    return std::make_unique<SparseOperand>(a, matrix_.norm_one, matrix_.norm_inf);
  }
  const AnyMatrix a{data, dtype, n_, n_, n_};
  return std::make_unique<DenseOperand>(a, matrix_.norm_one, matrix_.norm_inf);
}

CheckedSystem SeriesStepJob::System(const Operand& a) const {
  CheckedSystem system;
  system.a = &a;
  system.op = plan_.options.op;
  system.x = Vectors(plan_.x);
  system.b = Vectors(plan_.b);
  system.r = Vectors(plan_.residual);
  return system;
}

absl::Status SeriesStepJob::MeasureWithMaxima(ResidualCheck& check, std::vector<double>* residual) {
  residual->resize(plan_.columns);
  const GmresMemory memory = Krylov();
  CROUT_RETURN_IF_ERROR(check.Enqueue());
  CROUT_RETURN_IF_ERROR(context_.krylov_ops()->ColumnMaxAbs(check.system().r, memory.residual_max));
  CROUT_RETURN_IF_ERROR(
      ops().CopyToHost(memory.residual_max, residual->data(), residual->size() * sizeof(double)));
  return context_.Synchronize();
}

absl::StatusOr<double> SeriesStepJob::MeasureInitialGain(ResidualCheck& check) {
  std::vector<double> residual_max;
  CROUT_RETURN_IF_ERROR(MeasureWithMaxima(check, &residual_max));
  CROUT_RETURN_IF_ERROR(check.Read());
  if (residual_max.size() > 1) return 0;
  return rhs_max_[0] / residual_max[0];
}

absl::StatusOr<bool> SeriesStepJob::TakeStart(ResidualCheck& check) {
  if (!plan_.x0) {
    if (start_.solution == nullptr) return false;
    const Buffer& last = start_.solution->parts[kSolutionPart];
    if (last.size() != buffers_[plan_.x].size()) return false;
    CROUT_RETURN_IF_ERROR(ops().CopyOnDevice(last.data(), buffers_[plan_.x].data(), last.size()));
  }
  std::vector<double> residual_max;
  CROUT_RETURN_IF_ERROR(MeasureWithMaxima(check, &residual_max));
  bool any = false;
  bool all = true;
  keep_.resize(rhs_max_.size());
  for (size_t c = 0; c < keep_.size(); ++c) {
    const bool nearer = residual_max[c] < rhs_max_[c];  // false if NaN
    keep_[c] = nearer ? 1 : 0;
    any |= nearer;
    all &= nearer;
  }
  if (all) {
    CROUT_RETURN_IF_ERROR(check.Read());
    return true;
  }
  if (!any) return false;
  const GmresMemory memory = Krylov();
  CROUT_RETURN_IF_ERROR(
      ops().CopyToDevice(keep_.data(), memory.scales, keep_.size() * sizeof(double)));
  CROUT_RETURN_IF_ERROR(context_.krylov_ops()->ScaleColumns(memory.scales, Vectors(plan_.x)));
  CROUT_RETURN_IF_ERROR(check.Measure());
  return true;
}

absl::StatusOr<SolverChoice> SeriesStepJob::Choose(const SolverPair& pair,
                                                   const Factorization& factor) const {
  SolveOptions options;
  options.solver = pair.solver;
  options.fallback = pair.fallback;
  options.op = plan_.options.op;
  return ChooseSolver(factor.summary, options, /*measured=*/true);
}

absl::Status SeriesStepJob::Improve(ResidualCheck& check, InverseOperator& inverse,
                                    const GmresLimits& limits, Correction* done,
                                    StopRequested stop) {
  CROUT_ASSIGN_OR_RETURN(const Correction correction,
                         Correct(context_, check, inverse, limits, Krylov(), stop));
  done->iterations += correction.iterations;
  done->cost += correction.cost;
  return absl::OkStatus();
}

absl::Status SeriesStepJob::Settle(ResidualCheck& check, InverseOperator& inverse,
                                   GmresLimits limits, Correction* done, StopRequested stop) {
  CROUT_RETURN_IF_ERROR(Assess(check));
  const double finest = std::sqrt(static_cast<double>(n_)) * UnitRoundoff(plan_.vector_type);
  const SeriesStepSummary& summary = result_.summary;
  const bool in_doubt = summary.nearly_singular && accurate(summary.backward_error);
  if (!in_doubt || plan_.accuracy <= finest) return absl::OkStatus();
  limits.tolerance = finest;
  CROUT_RETURN_IF_ERROR(Improve(check, inverse, limits, done, stop));
  return Assess(check);
}

absl::Status SeriesStepJob::Assess(const ResidualCheck& check) {
  const CheckedSystem& system = check.system();
  const GmresMemory memory = Krylov();
  std::vector<double> x(plan_.columns);
  CROUT_RETURN_IF_ERROR(context_.krylov_ops()->ColumnMaxAbs(system.x, memory.solution_max));
  CROUT_RETURN_IF_ERROR(ops().CopyToHost(memory.solution_max, x.data(), x.size() * sizeof(double)));
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  SeriesStepSummary& summary = result_.summary;
  summary.backward_error = check.errors().normwise;
  summary.amplification = 0;
  for (size_t c = 0; c < x.size(); ++c) {
    if (x[c] == 0) continue;
    // Divides first, because the product may overflow.
    const double ratio = x[c] / rhs_max_[c] * system.a->NormInf(system.op);
    if (!(ratio <= summary.amplification)) summary.amplification = ratio;
  }
  summary.nearly_singular = IsNearlySingular(summary.amplification, plan_.vector_type, n_) ||
                            !(summary.amplification * summary.backward_error < kDoubtfulError);
  return absl::OkStatus();
}

bool SeriesStepJob::IsSolutionAccepted() const {
  const SeriesStepSummary& summary = result_.summary;
  return summary.solved && accurate(summary.backward_error) && !summary.nearly_singular;
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
  ResidualCheck check(context_, System(*a));
  SyncOnExit sync(context_);  // the solver's buffers may be in use, also on an error
  std::optional<UpdatedInverse> updated;
  Correction done;
  if (plan_.rank > 0) {
    CROUT_RETURN_IF_ERROR(UpdateFactor(solver, &done));
    updated.emplace(context_, solver, StepUpdate(plan_, start_, buffers_),
                    buffers_[plan_.update_work].data());
  }
  InverseOperator& inverse = updated ? static_cast<InverseOperator&>(*updated) : solver;
  CROUT_ASSIGN_OR_RETURN(const bool started, TakeStart(check));
  double gain = 0;  // unknown
  if (!started) {
    CROUT_RETURN_IF_ERROR(inverse.Apply(options.op, Vectors(plan_.b), Vectors(plan_.x)));
    AddSolve(&done);
    CROUT_ASSIGN_OR_RETURN(gain, MeasureInitialGain(check));
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
  CROUT_RETURN_IF_ERROR(Improve(check, inverse, limits, &done, stop));
  CROUT_RETURN_IF_ERROR(Settle(check, inverse, left(), &done, stop));
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
  ResidualCheck check(context_, System(*a));
  SyncOnExit sync(context_);
  const GmresLimits limits{kNewIterations, plan_.restart, plan_.accuracy};
  Correction done;
  for (bool again = true; again;) {
    CROUT_RETURN_IF_ERROR(inverse.Apply(options.op, Vectors(plan_.b), Vectors(plan_.x)));
    AddSolve(&done);
    CROUT_RETURN_IF_ERROR(check.Measure());
    CROUT_RETURN_IF_ERROR(Improve(check, inverse, limits, &done, stop));
    again = !accurate(check.errors().normwise) && choice.fallback_solver != nullptr &&
            inverse.name() == choice.solver->traits().name;
    if (again) inverse.FallBack();
  }
  CROUT_RETURN_IF_ERROR(Settle(check, inverse, limits, &done, stop));
  sync.Dismiss();
  summary.new_iterations = done.iterations;
  summary.solver = std::string(inverse.name());
  summary.solved = true;
  return absl::OkStatus();
}

absl::Status SeriesStepJob::RoundToOutputType() {
  if (RealOf(plan_.rhs.dtype) == DType::kFloat64) return absl::OkStatus();
  const std::unique_ptr<const Operand> a = MakeOperand();
  ResidualCheck check(context_, System(*a));
  const DType single = IsComplex(plan_.vector_type) ? DType::kComplex64 : DType::kFloat32;
  // The upload is no longer needed, so the delivery buffer is free.
  const AnyMatrix rounded = Columns(plan_.packed, single);
  CROUT_RETURN_IF_ERROR(ops().CopyScaled(Vectors(plan_.x), nullptr, nullptr, rounded));
  CROUT_RETURN_IF_ERROR(ops().CopyScaled(rounded, nullptr, nullptr, Vectors(plan_.x)));
  CROUT_RETURN_IF_ERROR(check.Measure());
  result_.summary.backward_error = check.errors().normwise;
  return absl::OkStatus();
}

absl::Status SeriesStepJob::Deliver(std::byte* out) {
  CROUT_RETURN_IF_ERROR(RoundToOutputType());
  std::byte* const delivered = buffers_[plan_.packed].data();
  CROUT_RETURN_IF_ERROR(ops().Export(Vectors(plan_.x), plan_.delivered, delivered));
  CROUT_RETURN_IF_ERROR(ops().CopyToHost(delivered, out, plan_.delivered.bytes()));
  return context_.Synchronize();
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
  CROUT_RETURN_IF_ERROR(ReadRhs());
  CROUT_RETURN_IF_ERROR(ReadStart());
  timings.solve += watch.Lap();
  SeriesStepSummary& summary = result_.summary;
  if (start_.factor != nullptr && plan_.options.max_iterations > 0) {
    CROUT_RETURN_IF_ERROR(TryOldFactor(stop));
  }
  summary.old_seconds = watch.Lap();
  timings.solve += summary.old_seconds;
  if (plan_.may_factor() && !IsSolutionAccepted()) {
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
  if (summary.solved) CROUT_RETURN_IF_ERROR(Deliver(out));
  summary.accurate = summary.solved && accurate(summary.backward_error);
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
