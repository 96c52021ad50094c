#include "kernels/jobs/direct_solve.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/jobs/cancellation.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/jobs/sync_on_exit.h"
#include "kernels/numerics/dense_operand.h"
#include "kernels/numerics/residual_check.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/failpoint.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"

namespace crout {
namespace {

// Sizes in bytes of the buffers of one call; 0 for those it does without.
struct DirectSolvePlan {
  size_t matrix = 0;  // both uploads
  size_t rhs = 0;
  size_t a = 0;         // A as the method destroys it; 0 where that is the upload
  size_t x = 0;         // B, then X, in the method's type; 0 where that is the upload
  size_t b = 0;         // B in float64 for the residual; 0 where the upload is that already
  size_t solution = 0;  // X in float64 for the residual; 0 where x is that
  size_t residual = 0;
  size_t workspace = 0;
  JobBytes bytes;
};

bool IsColumnMajor(const PackedMatrix& shape, DType dtype) {
  return shape.dtype == dtype && shape.layout == Layout::kColumnMajor;
}

absl::Status AddUp(DirectSolvePlan& plan) {
  ByteSum sum;
  sum.AddBuffer(plan.matrix).AddBuffer(plan.rhs).AddBuffer(plan.a).AddBuffer(plan.x);
  sum.AddBuffer(plan.b).AddBuffer(plan.solution).AddBuffer(plan.residual);
  CROUT_ASSIGN_OR_RETURN(plan.bytes.peak, sum.AddBuffer(plan.workspace).total());
  return absl::OkStatus();
}

absl::StatusOr<DirectSolvePlan> PlanDirectSolve(const DirectSolveOptions& options,
                                                const PackedMatrix& matrix,
                                                const PackedMatrix& rhs) {
  if (options.solver == nullptr) return absl::InvalidArgumentError("no solver is given");
  const bool verify = options.verify;
  DirectSolvePlan plan;
  CROUT_ASSIGN_OR_RETURN(plan.matrix, MatrixBytes(matrix.rows, matrix.cols, matrix.dtype));
  CROUT_ASSIGN_OR_RETURN(plan.rhs, MatrixBytes(rhs.rows, rhs.cols, rhs.dtype));
  CROUT_ASSIGN_OR_RETURN(plan.a, MatrixBytes(matrix.rows, matrix.cols, options.dtype));
  CROUT_ASSIGN_OR_RETURN(plan.x, MatrixBytes(rhs.rows, rhs.cols, options.dtype));
  CROUT_ASSIGN_OR_RETURN(const size_t doubles, MatrixBytes(rhs.rows, rhs.cols, DType::kFloat64));
  CROUT_ASSIGN_OR_RETURN(plan.workspace,
                         options.solver->WorkspaceBytes(options.dtype, rhs.rows, rhs.cols));
  if (!verify && IsColumnMajor(matrix, options.dtype)) plan.a = 0;
  if (!verify && IsColumnMajor(rhs, options.dtype)) plan.x = 0;
  if (verify) {
    plan.b = IsColumnMajor(rhs, DType::kFloat64) ? 0 : doubles;
    plan.solution = options.dtype == DType::kFloat64 ? 0 : doubles;
    plan.residual = doubles;
  }
  CROUT_RETURN_IF_ERROR(AddUp(plan));
  return plan;
}

// One SolveDirectly call. Its members are the buffers that enqueued work uses.
class DirectSolveJob {
 public:
  DirectSolveJob(ExecutionContext& context, Buffer matrix_upload, const PackedMatrix& matrix,
                 Buffer rhs_upload, const PackedMatrix& rhs, const DirectSolveOptions& options,
                 const DirectSolvePlan& plan)
      : context_(context),
        options_(options),
        plan_(plan),
        n_(matrix.rows),
        matrix_(matrix),
        rhs_(rhs),
        matrix_upload_(std::move(matrix_upload)),
        rhs_upload_(std::move(rhs_upload)) {
    matrix_.data = matrix_upload_.data();
    rhs_.data = rhs_upload_.data();
  }

  absl::StatusOr<DirectSolveSummary> Run(std::byte* out, StopRequested stop,
                                         KernelTimings& timings);

 private:
  absl::Status AllocateBuffers();
  absl::Status ImportMatrix();
  absl::Status ImportRhs();
  absl::Status Solve(StopRequested stop);
  absl::Status Verify();
  absl::Status Deliver(std::byte* out);

  MatrixOps& ops() { return context_.ops(); }
  // Without right-hand sides only A is looked at.
  bool has_rhs() const { return rhs_.cols > 0; }
  AnyMatrix A() const {
    return {(plan_.a == 0 ? matrix_upload_ : a_).data(), options_.dtype, n_, n_, n_};
  }
  AnyMatrix Columns(const Buffer& buffer, DType dtype) const {
    return {buffer.data(), dtype, n_, rhs_.cols, n_};
  }
  AnyMatrix X() const { return Columns(plan_.x == 0 ? rhs_upload_ : x_, options_.dtype); }
  AnyMatrix B() const { return Columns(plan_.b == 0 ? rhs_upload_ : b_, DType::kFloat64); }
  AnyMatrix Solution() const {
    return plan_.solution == 0 ? X() : Columns(solution_, DType::kFloat64);
  }

  ExecutionContext& context_;
  const DirectSolveOptions& options_;
  const DirectSolvePlan& plan_;
  const int64_t n_;
  PackedMatrix matrix_;
  PackedMatrix rhs_;
  Buffer matrix_upload_;
  Buffer rhs_upload_;
  Buffer a_;
  Buffer x_;
  Buffer b_;
  Buffer solution_;
  Buffer residual_;
  Buffer workspace_;
  DirectSolveSummary summary_;
};

absl::Status DirectSolveJob::AllocateBuffers() {
  MemoryResource& memory = context_.device().memory();
  CROUT_ASSIGN_OR_RETURN(a_, memory.Allocate(plan_.a));
  CROUT_ASSIGN_OR_RETURN(x_, memory.Allocate(plan_.x));
  CROUT_ASSIGN_OR_RETURN(b_, memory.Allocate(plan_.b));
  CROUT_ASSIGN_OR_RETURN(solution_, memory.Allocate(plan_.solution));
  CROUT_ASSIGN_OR_RETURN(residual_, memory.Allocate(plan_.residual));
  CROUT_ASSIGN_OR_RETURN(workspace_, memory.Allocate(plan_.workspace));
  return absl::OkStatus();
}

absl::Status DirectSolveJob::ImportMatrix() {
  CROUT_RETURN_IF_ERROR(ops().Import(matrix_, A()));
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  const MatrixStats& stats = context_.report().matrix;
  CROUT_RETURN_IF_ERROR(CheckFinite(stats, matrix_, "matrix"));
  CROUT_RETURN_IF_ERROR(CheckNoOverflow(stats, matrix_, options_.dtype, "matrix"));
  summary_.norm_one = stats.norm_one;
  summary_.norm_inf = stats.norm_inf;
  return absl::OkStatus();
}

absl::Status DirectSolveJob::ImportRhs() {
  if (plan_.b > 0) CROUT_RETURN_IF_ERROR(ops().Import(rhs_, B()));
  CROUT_RETURN_IF_ERROR(ops().Import(rhs_, X()));
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  const MatrixStats& stats = context_.report().matrix;
  CROUT_RETURN_IF_ERROR(CheckFinite(stats, rhs_, "right-hand side"));
  return CheckNoOverflow(stats, rhs_, options_.dtype, "right-hand side");
}

absl::Status DirectSolveJob::Solve(StopRequested stop) {
  const std::span<std::byte> workspace(workspace_.data(), workspace_.size());
  CROUT_RETURN_IF_ERROR(options_.solver->Solve(context_, A(), X(), workspace, stop));
  CROUT_RETURN_IF_ERROR(context_.SynchronizeOrStop(stop));
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  summary_.info = context_.report().info;
  return absl::OkStatus();
}

absl::Status DirectSolveJob::Verify() {
  if (plan_.solution > 0)
    CROUT_RETURN_IF_ERROR(ops().CopyScaled(X(), nullptr, nullptr, Solution()));
  if (options_.dtype == DType::kFloat64 && rhs_.dtype == DType::kFloat32) {
    // As it will be delivered. The upload has been read: it has room.
    const AnyMatrix rounded = Columns(rhs_upload_, rhs_.dtype);
    CROUT_RETURN_IF_ERROR(ops().CopyScaled(Solution(), nullptr, nullptr, rounded));
    CROUT_RETURN_IF_ERROR(ops().CopyScaled(rounded, nullptr, nullptr, Solution()));
  }
  // Where A arrived by rows, the upload holds A^T by columns.
  const bool transposed = matrix_.layout == Layout::kRowMajor;
  const DenseOperand a({matrix_upload_.data(), matrix_.dtype, n_, n_, n_},
                       transposed ? summary_.norm_inf : summary_.norm_one,
                       transposed ? summary_.norm_one : summary_.norm_inf);
  CheckedSystem system;
  system.a = &a;
  system.op = transposed ? Op::kTranspose : Op::kNone;
  system.x = Solution().As<double>();
  system.b = B().As<double>();
  system.r = Columns(residual_, DType::kFloat64).As<double>();
  ResidualCheck check(context_, system);
  CROUT_RETURN_IF_ERROR(check.Measure());
  summary_.backward_error = check.errors().normwise;
  return absl::OkStatus();
}

absl::Status DirectSolveJob::Deliver(std::byte* out) {
  const std::byte* delivered = X().data;
  if (!IsColumnMajor(rhs_, options_.dtype)) {
    CROUT_RETURN_IF_ERROR(ops().Export(X(), rhs_, rhs_upload_.data()));
    delivered = rhs_upload_.data();
  }
  CROUT_RETURN_IF_ERROR(ops().CopyToHost(delivered, out, plan_.rhs));
  return context_.Synchronize();
}

absl::StatusOr<DirectSolveSummary> DirectSolveJob::Run(std::byte* out, StopRequested stop,
                                                       KernelTimings& timings) {
  Stopwatch watch;
  SyncOnExit sync(context_);
  CROUT_RETURN_IF_ERROR(Failpoint("direct_solve.run"));
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  CROUT_RETURN_IF_ERROR(AllocateBuffers());
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
    timings.device_to_host += watch.Lap();
  }
  sync.Dismiss();
  summary_.solver = std::string(options_.solver->name());
  summary_.n = n_;
  summary_.dtype = options_.dtype;
  summary_.matrix_dtype = matrix_.dtype;
  return std::move(summary_);
}

absl::Status CheckArguments(const PackedMatrix& matrix, size_t matrix_bytes,
                            const PackedMatrix& rhs, size_t rhs_bytes,
                            const DirectSolvePlan& plan) {
  CROUT_RETURN_IF_ERROR(CheckSquareUpload(matrix, matrix_bytes, plan.matrix));
  if (rhs.rows != matrix.rows) {
    return absl::InvalidArgumentError(absl::StrCat("right-hand side has ", rhs.rows,
                                                   " rows, the matrix is of order ", matrix.rows));
  }
  if (rhs_bytes != plan.rhs) {
    return absl::InvalidArgumentError(
        absl::StrCat("right-hand side has ", rhs_bytes, " bytes, its shape ", plan.rhs));
  }
  return absl::OkStatus();
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

absl::StatusOr<JobBytes> DirectSolveBytes(const DirectSolveOptions& options,
                                          const PackedMatrix& matrix, const PackedMatrix& rhs) {
  CROUT_ASSIGN_OR_RETURN(const DirectSolvePlan plan, PlanDirectSolve(options, matrix, rhs));
  return plan.bytes;
}

absl::StatusOr<DirectSolveSummary> SolveDirectly(ExecutionContext& context, Buffer matrix_upload,
                                                 PackedMatrix matrix_shape, Buffer rhs_upload,
                                                 PackedMatrix rhs_shape,
                                                 const DirectSolveOptions& options, std::byte* out,
                                                 StopRequested stop, KernelTimings& timings) {
  SyncOnExit sync(context);  // The uploads may still be arriving.
  CROUT_ASSIGN_OR_RETURN(const DirectSolvePlan plan,
                         PlanDirectSolve(options, matrix_shape, rhs_shape));
  CROUT_RETURN_IF_ERROR(
      CheckArguments(matrix_shape, matrix_upload.size(), rhs_shape, rhs_upload.size(), plan));
  if (matrix_shape.rows == 0) return EmptySolve(options, matrix_shape.dtype);
  DirectSolveJob job(context, std::move(matrix_upload), matrix_shape, std::move(rhs_upload),
                     rhs_shape, options, plan);
  sync.Dismiss();  // Run has its own, before the job's buffers are destroyed.
  return job.Run(out, stop, timings);
}

}  // namespace crout
