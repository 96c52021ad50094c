// SPDX-License-Identifier: Apache-2.0

#include "kernels/jobs/sparse/sparse_factorize.h"

#include <cmath>
#include <complex>
#include <span>
#include <string>
#include <utility>

#include "kernels/execution_context.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/jobs/sparse/sparse_attempt.h"
#include "kernels/jobs/sparse/sparse_retries.h"
#include "kernels/numerics/condition.h"
#include "kernels/numerics/factor_solver.h"
#include "kernels/sparse_ops.h"
#include "kernels/util/failpoint.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"

namespace crout {
namespace {

// One call of FactorizeSparse. Enqueued work uses the buffers of the attempt.
class SparseFactorizeJob {
 public:
  SparseFactorizeJob(ExecutionContext& context, const SparseFactorizePlan& plan,
                     SparseGrowth* growth, Buffer&& upload)
      : context_(context), attempt_(context, plan, growth, std::move(upload)) {}

  absl::StatusOr<Factorization> Run(StopRequested stop, KernelTimings& timings);

 private:
  absl::Status Inspect();
  absl::Status Factor(StopRequested stop);
  absl::Status FillDeterminant();
  absl::Status EstimateCondition(Factorization& result, StopRequested stop);
  Factorization TakeResult();

  const SparseFactorizePlan& plan() const { return attempt_.plan(); }
  const SparseFactorizeOptions& options() const { return attempt_.options(); }
  const Analysis& analysis() const { return attempt_.analysis(); }

  ExecutionContext& context_;
  SparseAttempt attempt_;
  MatrixStats stats_;
  FactorSummary summary_;
};

absl::Status SparseFactorizeJob::Inspect() {
  CROUT_RETURN_IF_ERROR(context_.sparse_ops()->Inspect(attempt_.Matrix(), options().factor_dtype));
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  const MatrixStats& stats = context_.report().matrix;
  const PackedMatrix shape{nullptr, plan().matrix_dtype, Layout::kColumnMajor, analysis().n,
                           analysis().n};
  CROUT_RETURN_IF_ERROR(CheckFinite(stats, shape, "matrix"));
  if (analysis().row_scale.empty() || !options().method.lu->AppliesScales()) {
    CROUT_RETURN_IF_ERROR(CheckConversion(stats, shape, options().factor_dtype, "matrix"));
  }
  summary_.norm_one = stats.norm_one;
  summary_.norm_inf = stats.norm_inf;
  stats_ = stats;
  return absl::OkStatus();
}

absl::Status SparseFactorizeJob::Factor(StopRequested stop) {
  CROUT_ASSIGN_OR_RETURN(ProbedFactor made, FactorWithRetries(attempt_, stats_, stop));
  summary_.algorithm = std::string(options().method.lu->name());
  summary_.n = analysis().n;
  summary_.factor_dtype = options().factor_dtype;
  summary_.matrix_dtype = plan().matrix_dtype;
  summary_.unit_diagonal = options().method.lu->traits().unit_diagonal;
  summary_.matrix_nonzeros = analysis().nonzeros;
  summary_.info = made.sparse.numeric.info;
  if (summary_.info > 0) summary_.singular = SingularReason::kZeroPivot;
  summary_.pivot_growth = made.sparse.numeric.pivot_growth;
  summary_.sparse = std::move(made.sparse);
  if (made.probe) {
    summary_.quality = made.probe->quality;
    summary_.condition_signal = made.probe->condition_signal;
  }
  return options().determinant ? FillDeterminant() : absl::OkStatus();
}

absl::Status SparseFactorizeJob::FillDeterminant() {
  if (!std::isfinite(summary_.pivot_growth)) return absl::OkStatus();
  // The determinant of a perturbed matrix may differ from A's in size and sign.
  if (summary_.info == 0 && summary_.sparse->numeric.perturbed_pivots > 0) return absl::OkStatus();
  const std::span<std::byte> factor = attempt_.Memory(plan().factor);
  CROUT_ASSIGN_OR_RETURN(
      const LogDeterminant determinant,
      options().method.lu->Determinant(context_, analysis(), summary_.sparse->numeric, factor,
                                       options().factor_dtype));
  summary_.det_sign = determinant.sign.real();
  summary_.det_sign_imaginary = determinant.sign.imag();
  summary_.det_log_abs = determinant.log_abs;
  return absl::OkStatus();
}

Factorization SparseFactorizeJob::TakeResult() {
  Factorization result;
  result.summary = std::move(summary_);
  result.parts.Add(kLuPart, PartKind::kFactor, attempt_.Take(plan().factor));
  if (options().keep_matrix) {
    result.parts.Add(kSparseMatrixPart, PartKind::kOperand, attempt_.Take(plan().matrix));
  }
  return result;
}

absl::Status SparseFactorizeJob::EstimateCondition(Factorization& result, StopRequested stop) {
  CROUT_ASSIGN_OR_RETURN(
      FactorSolver solver,
      FactorSolver::Create(context_, result, *options().method.solver, /*tolerance=*/0,
                           /*max_nrhs=*/1));
  CROUT_ASSIGN_OR_RETURN(result.summary.rcond,
                         EstimateRcond(context_, solver, {}, result.summary.norm_one, stop));
  return absl::OkStatus();
}

absl::StatusOr<Factorization> SparseFactorizeJob::Run(StopRequested stop, KernelTimings& timings) {
  Stopwatch watch;
  SyncOnExit sync(context_);
  context_.report().ReportColumns(0);  // clears the progress of the context's last job
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  CROUT_RETURN_IF_ERROR(attempt_.Allocate());
  CROUT_RETURN_IF_ERROR(Inspect());
  CROUT_RETURN_IF_ERROR(Failpoint("factorize.factor"));
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  CROUT_RETURN_IF_ERROR(Factor(stop));
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  Factorization result = TakeResult();
  if (options().condition) {
    result.summary.rcond = 0;
    const bool can_solve = result.summary.quality.has_value();  // the probe solved
    if (can_solve) CROUT_RETURN_IF_ERROR(EstimateCondition(result, stop));
  }
  sync.Dismiss();
  timings.factor += watch.Lap();
  return result;
}

}  // namespace

absl::StatusOr<Factorization> FactorizeSparse(ExecutionContext& context,
                                              const SparseFactorizePlan& plan, Buffer upload,
                                              StopRequested stop, KernelTimings& timings,
                                              SparseGrowth* growth) {
  SyncOnExit sync(context);  // `upload` may still be arriving.
  CROUT_RETURN_IF_ERROR(CheckUpload(upload.size(), plan.buffers.bytes(plan.matrix), "matrix"));
  if (context.sparse_ops() == nullptr) {
    return absl::UnimplementedError(
        "the device does not support sparse matrices. Use another device, or send a dense matrix");
  }
  SparseFactorizeJob job(context, plan, growth, std::move(upload));
  sync.Dismiss();  // Run synchronizes before the job's buffers are destroyed
  return job.Run(stop, timings);
}

}  // namespace crout
