// SPDX-License-Identifier: Apache-2.0

#include "kernels/jobs/direct_solve.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/execution_context.h"
#include "kernels/jobs/assess_solution.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/jobs/solve.h"
#include "kernels/numerics/accuracy_warnings.h"
#include "kernels/numerics/operands.h"
#include "kernels/numerics/residual_check.h"
#include "kernels/stop_requested.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/failpoint.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"

namespace crout {
namespace {

bool IsColumnMajor(const PackedMatrix& shape, DType dtype) {
  return shape.dtype == dtype && shape.layout == Layout::kColumnMajor;
}

// Adds the buffers. The method destroys A and computes X in the uploads if nothing else reads them.
absl::Status AddBuffers(DirectSolvePlan& plan) {
  const DirectSolveOptions& options = plan.options;
  const PackedMatrix& a = plan.matrix_shape;
  const PackedMatrix& b = plan.rhs_shape;
  BufferPlan& buffers = plan.buffers;
  CROUT_ASSIGN_OR_RETURN(const size_t matrix, MatrixBytes(a.rows, a.cols, a.dtype));
  CROUT_ASSIGN_OR_RETURN(const size_t rhs, MatrixBytes(b.rows, b.cols, b.dtype));
  CROUT_ASSIGN_OR_RETURN(const size_t destroyed, MatrixBytes(a.rows, a.cols, options.dtype));
  CROUT_ASSIGN_OR_RETURN(const size_t x, MatrixBytes(b.rows, plan.columns, options.dtype));
  const DType wide = WideOf(options.dtype);
  CROUT_ASSIGN_OR_RETURN(const size_t vectors, MatrixBytes(b.rows, plan.columns, wide));
  CROUT_ASSIGN_OR_RETURN(const size_t delivered, MatrixBytes(b.rows, b.cols, plan.delivered.dtype));
  CROUT_ASSIGN_OR_RETURN(const size_t workspace,
                         options.solver->WorkspaceBytes(options.dtype, b.rows, plan.columns));
  const bool verify = options.verify;
  plan.matrix_upload = buffers.Add("matrix", BufferKind::kUpload, matrix);
  plan.rhs_upload = buffers.Add("right-hand sides", BufferKind::kUpload, rhs);
  plan.a = !verify && IsColumnMajor(a, options.dtype) ? plan.matrix_upload
                                                      : buffers.Add("working copy", destroyed);
  plan.x =
      !verify && IsColumnMajor(b, options.dtype) ? plan.rhs_upload : buffers.Add("solution", x);
  plan.b = plan.rhs_upload;
  plan.solution = plan.x;
  if (verify && !IsColumnMajor(b, wide)) {
    plan.b = buffers.Add("wide right-hand sides", vectors);
  }
  if (verify && options.dtype != wide) plan.solution = buffers.Add("wide solution", vectors);
  plan.residual = buffers.Add("residual", verify ? vectors : 0);
  plan.packed = delivered == rhs ? plan.rhs_upload : buffers.Add("packed solution", delivered);
  plan.workspace = buffers.Add("workspace", workspace);
  buffers.Add("reply", BufferKind::kReply, delivered);
  return absl::OkStatus();
}

// One SolveDirectly call. Owns the buffers that enqueued work uses.
class DirectSolveJob {
 public:
  DirectSolveJob(ExecutionContext& context, const DirectSolvePlan& plan, Buffer&& matrix_upload,
                 Buffer&& rhs_upload)
      : context_(context),
        plan_(plan),
        options_(plan.options),
        n_(plan.matrix_shape.rows),
        matrix_(plan.matrix_shape),
        rhs_(plan.rhs_shape),
        buffers_(plan.buffers) {
    matrix_.data = matrix_upload.data();
    rhs_.data = rhs_upload.data();
    buffers_.Give(plan.matrix_upload, std::move(matrix_upload));
    buffers_.Give(plan.rhs_upload, std::move(rhs_upload));
  }

  absl::StatusOr<DirectSolveSummary> Run(std::byte* out, StopRequested stop,
                                         KernelTimings& timings);

 private:
  absl::Status ImportMatrix();
  absl::Status ImportRhs();
  absl::Status Solve(StopRequested stop);
  absl::Status Verify();
  absl::Status Deliver(std::byte* out);
  // Judges X as delivered.
  void Assess(std::byte* out);

  MatrixOps& ops() { return context_.ops(); }
  // Without right-hand sides, only A is checked.
  bool has_rhs() const { return rhs_.cols > 0; }
  AnyMatrix A() const { return {buffers_[plan_.a].data(), options_.dtype, n_, n_, n_}; }
  AnyMatrix Columns(BufferPlan::Id id, DType dtype) const {
    return {buffers_[id].data(), dtype, n_, plan_.columns, n_};
  }
  AnyMatrix X() const { return Columns(plan_.x, options_.dtype); }
  // Valid only if the solution is verified.
  AnyMatrix B() const { return Columns(plan_.b, WideOf(options_.dtype)); }
  AnyMatrix Solution() const { return Columns(plan_.solution, WideOf(options_.dtype)); }

  ExecutionContext& context_;
  const DirectSolvePlan& plan_;
  const DirectSolveOptions& options_;
  const int64_t n_;
  PackedMatrix matrix_;
  PackedMatrix rhs_;
  JobBuffers buffers_;
  DirectSolveSummary summary_;
  double matrix_max_abs_ = 0;
  double rhs_max_abs_ = 0;
  double pivot_condition_ = 0;
};

absl::Status DirectSolveJob::ImportMatrix() {
  CROUT_RETURN_IF_ERROR(ops().Import(matrix_, A()));
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  const MatrixStats& stats = context_.report().matrix;
  CROUT_RETURN_IF_ERROR(CheckFinite(stats, matrix_, "matrix"));
  CROUT_RETURN_IF_ERROR(CheckConversion(stats, matrix_, options_.dtype, "matrix"));
  summary_.norm_one = stats.norm_one;
  summary_.norm_inf = stats.norm_inf;
  matrix_max_abs_ = stats.max_abs;
  return absl::OkStatus();
}

absl::Status DirectSolveJob::ImportRhs() {
  if (plan_.b != plan_.rhs_upload) CROUT_RETURN_IF_ERROR(ops().Import(rhs_, B()));
  CROUT_RETURN_IF_ERROR(ops().Import(rhs_, X()));
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  const MatrixStats& stats = context_.report().matrix;
  CROUT_RETURN_IF_ERROR(CheckFinite(stats, rhs_, "right-hand side"));
  rhs_max_abs_ = stats.max_abs;
  return CheckConversion(stats, rhs_, options_.dtype, "right-hand side");
}

absl::Status DirectSolveJob::Solve(StopRequested stop) {
  CROUT_RETURN_IF_ERROR(
      options_.solver->Solve(context_, A(), X(), buffers_.Span(plan_.workspace), stop));
  CROUT_RETURN_IF_ERROR(ops().InspectPivots(A()));
  CROUT_RETURN_IF_ERROR(context_.SynchronizeOrStop(stop));
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  summary_.info = context_.report().info;
  if (summary_.info > 0) return absl::OkStatus();
  const FactorStats& pivots = context_.report().factor;
  pivot_condition_ = PivotCondition(pivots.min_pivot, pivots.max_pivot, matrix_max_abs_);
  return absl::OkStatus();
}

absl::Status DirectSolveJob::Verify() {
  if (plan_.solution != plan_.x) {
    CROUT_RETURN_IF_ERROR(ops().CopyScaled(X(), nullptr, nullptr, Solution()));
  }
  if (RealOf(options_.dtype) == DType::kFloat64 && RealOf(rhs_.dtype) == DType::kFloat32) {
    // Round as X will be delivered. The upload is no longer needed, so the delivery buffer is free.
    const bool complex = IsComplex(options_.dtype);
    const AnyMatrix rounded = Columns(plan_.packed, complex ? DType::kComplex64 : DType::kFloat32);
    CROUT_RETURN_IF_ERROR(ops().CopyScaled(Solution(), nullptr, nullptr, rounded));
    CROUT_RETURN_IF_ERROR(ops().CopyScaled(rounded, nullptr, nullptr, Solution()));
  }
  // A row-major upload holds A^T in column-major order.
  const bool transposed = matrix_.layout == Layout::kRowMajor;
  const DenseOperand a({buffers_[plan_.matrix_upload].data(), matrix_.dtype, n_, n_, n_},
                       transposed ? summary_.norm_inf : summary_.norm_one,
                       transposed ? summary_.norm_one : summary_.norm_inf);
  CheckedSystem system;
  system.a = &a;
  system.op = transposed ? Op::kTranspose : Op::kNone;
  system.x = Solution();
  system.b = B();
  system.r = Columns(plan_.residual, WideOf(options_.dtype));
  ResidualCheck check(context_, system);
  CROUT_RETURN_IF_ERROR(check.Measure());
  summary_.backward_error = check.errors().normwise;
  return absl::OkStatus();
}

absl::Status DirectSolveJob::Deliver(std::byte* out) {
  const std::byte* delivered = X().data;
  if (!IsColumnMajor(rhs_, options_.dtype)) {
    delivered = buffers_[plan_.packed].data();
    CROUT_RETURN_IF_ERROR(ops().Export(X(), plan_.delivered, buffers_[plan_.packed].data()));
  }
  CROUT_RETURN_IF_ERROR(ops().CopyToHost(delivered, out, plan_.delivered.bytes()));
  return context_.Synchronize();
}

void DirectSolveJob::Assess(std::byte* out) {
  SolveFigures figures;
  figures.backward_error = summary_.backward_error;
  figures.matrix_norm = summary_.norm_inf;
  figures.rhs_max_abs = rhs_max_abs_;
  const bool single = RealOf(rhs_.dtype) == DType::kFloat32;
  figures.accepted = AcceptedBackwardError(single ? rhs_.dtype : options_.dtype, n_);
  PackedMatrix delivered = plan_.delivered;
  delivered.data = out;
  AccuracyWarnings& warnings = summary_.accuracy_warnings;
  warnings = AssessSolution(nullptr, figures, delivered);
  warnings.nearly_singular |= IsNearlySingular(pivot_condition_, options_.dtype, n_);
}

absl::StatusOr<DirectSolveSummary> DirectSolveJob::Run(std::byte* out, StopRequested stop,
                                                       KernelTimings& timings) {
  Stopwatch watch;
  SyncOnExit sync(context_);
  const StopScope scope(context_, stop);
  CROUT_RETURN_IF_ERROR(Failpoint("direct_solve.run"));
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  CROUT_RETURN_IF_ERROR(buffers_.Allocate(context_.device().memory()));
  CROUT_RETURN_IF_ERROR(ImportMatrix());
  if (has_rhs()) CROUT_RETURN_IF_ERROR(ImportRhs());
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  CROUT_RETURN_IF_ERROR(Solve(stop));
  timings.solve += watch.Lap();
  if (summary_.info == 0) {
    if (options_.verify && has_rhs()) CROUT_RETURN_IF_ERROR(Verify());
    if (options_.verify && !has_rhs()) summary_.backward_error = 0;
    timings.refine += watch.Lap();
    CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
    if (has_rhs()) CROUT_RETURN_IF_ERROR(Deliver(out));
    if (has_rhs()) Assess(out);
    timings.device_to_host += watch.Lap();
  }
  sync.Dismiss();
  summary_.solver = std::string(options_.solver->name());
  summary_.n = n_;
  summary_.dtype = options_.dtype;
  summary_.matrix_dtype = matrix_.dtype;
  return std::move(summary_);
}

DirectSolveSummary EmptySolve(const DirectSolveOptions& options, DType matrix_dtype) {
  DirectSolveSummary summary;
  summary.solver = std::string(options.solver->name());
  summary.dtype = options.dtype;
  summary.matrix_dtype = matrix_dtype;
  if (options.verify) summary.backward_error = 0;
  return summary;
}

}  // namespace

absl::StatusOr<DirectSolvePlan> PlanDirectSolve(const DirectSolveOptions& options,
                                                PackedMatrix matrix_shape, PackedMatrix rhs_shape) {
  if (options.solver == nullptr) return absl::InvalidArgumentError("the options name no solver");
  CROUT_RETURN_IF_ERROR(CheckSquare(matrix_shape));
  if (rhs_shape.rows != matrix_shape.rows) {
    return absl::InvalidArgumentError(absl::StrCat(
        "right-hand side has ", rhs_shape.rows, " rows; the matrix has order ", matrix_shape.rows,
        ". Send a right-hand side with ", matrix_shape.rows, " rows"));
  }
  CROUT_RETURN_IF_ERROR(CheckSameField(matrix_shape.dtype, options.dtype));
  DirectSolvePlan plan;
  plan.options = options;
  plan.matrix_shape = matrix_shape;
  plan.rhs_shape = rhs_shape;
  CROUT_ASSIGN_OR_RETURN(const SolutionShape solution, ShapeSolution(options.dtype, rhs_shape));
  plan.delivered = solution.delivered;
  plan.columns = solution.columns;
  CROUT_RETURN_IF_ERROR(AddBuffers(plan));
  CROUT_ASSIGN_OR_RETURN(plan.bytes, plan.buffers.Sum());
  plan.seconds = options.solver->PredictSeconds(options.dtype, rhs_shape.rows, plan.columns);
  return plan;
}

absl::StatusOr<DirectSolveSummary> SolveDirectly(ExecutionContext& context,
                                                 const DirectSolvePlan& plan, Buffer matrix_upload,
                                                 Buffer rhs_upload, std::byte* out,
                                                 StopRequested stop, KernelTimings& timings) {
  SyncOnExit sync(context);  // the uploads may still be arriving
  CROUT_RETURN_IF_ERROR(
      CheckUpload(matrix_upload.size(), plan.buffers.bytes(plan.matrix_upload), "matrix"));
  CROUT_RETURN_IF_ERROR(
      CheckUpload(rhs_upload.size(), plan.buffers.bytes(plan.rhs_upload), "right-hand side"));
  if (plan.matrix_shape.rows == 0) return EmptySolve(plan.options, plan.matrix_shape.dtype);
  DirectSolveJob job(context, plan, std::move(matrix_upload), std::move(rhs_upload));
  sync.Dismiss();  // Run synchronizes before the job's buffers are destroyed
  return job.Run(out, stop, timings);
}

absl::StatusOr<DirectSolveSummary> SolveDirectly(ExecutionContext& context, Buffer matrix_upload,
                                                 PackedMatrix matrix_shape, Buffer rhs_upload,
                                                 PackedMatrix rhs_shape,
                                                 const DirectSolveOptions& options, std::byte* out,
                                                 StopRequested stop, KernelTimings& timings) {
  SyncOnExit sync(context);  // also if planning fails
  CROUT_ASSIGN_OR_RETURN(const DirectSolvePlan plan,
                         PlanDirectSolve(options, matrix_shape, rhs_shape));
  sync.Dismiss();
  return SolveDirectly(context, plan, std::move(matrix_upload), std::move(rhs_upload), out, stop,
                       timings);
}

}  // namespace crout
