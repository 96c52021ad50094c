// SPDX-License-Identifier: Apache-2.0

#include "kernels/jobs/echelon.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/dtype.h"
#include "kernels/execution_context.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/numerics/normalizing_scale.h"
#include "kernels/numerics/pivot_growth.h"
#include "kernels/stop_requested.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/failpoint.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"
#include "kernels/util/strings.h"

namespace crout {
namespace {

absl::Status AddBuffers(EchelonPlan& plan) {
  const PackedMatrix& shape = plan.shape;
  BufferPlan& buffers = plan.buffers;
  CROUT_ASSIGN_OR_RETURN(const size_t matrix, MatrixBytes(shape.rows, shape.cols, shape.dtype));
  CROUT_ASSIGN_OR_RETURN(const size_t workspace,
                         plan.options.reducer->WorkspaceBytes(shape.dtype, shape.rows, shape.cols));
  const bool by_rows = shape.layout == Layout::kRowMajor;
  plan.upload = buffers.Add("matrix", BufferKind::kUpload, matrix);
  plan.matrix = by_rows ? buffers.Add("matrix by columns", matrix) : plan.upload;
  plan.workspace = buffers.Add("workspace", workspace);
  CROUT_ASSIGN_OR_RETURN(const size_t scales, MatrixBytes(shape.rows, 1, DType::kFloat64));
  plan.scales = buffers.Add("row scales", scales);
  buffers.Add("row scales (host copy)", BufferKind::kReport, scales);
  buffers.Add("reply", BufferKind::kReply, matrix);
  return absl::OkStatus();
}

// One ReduceToEchelonForm call. Owns the buffers that enqueued work uses.
class EchelonJob {
 public:
  EchelonJob(ExecutionContext& context, const EchelonPlan& plan, Buffer&& upload)
      : context_(context), plan_(plan), packed_(plan.shape), buffers_(plan.buffers) {
    packed_.data = upload.data();
    buffers_.Give(plan.upload, std::move(upload));
  }

  absl::StatusOr<EchelonForm> Run(std::byte* out, StopRequested stop, KernelTimings& timings);

 private:
  int64_t eligible() const { return packed_.cols - plan_.options.augmented; }
  // The first `cols` columns of A, column-major.
  AnyMatrix A(int64_t cols) const {
    return {buffers_[plan_.matrix].data(), packed_.dtype, packed_.rows, cols, packed_.rows};
  }

  absl::Status ImportMatrix();
  // Returns statistics of the current contents of A.
  absl::StatusOr<MatrixStats> Statistics(int64_t cols);
  // Multiplies A, whose statistics are `stats`, by scale_: a power of two for which the norm is
  // finite and intermediate results do not overflow. The echelon form is not affected.
  absl::Status ScaleIntoRange(const MatrixStats& stats);
  absl::Status Multiply(double scale, int64_t first_row, int64_t first_col);
  // Returns the tolerance for the scaled A. `stats` are those of its eligible columns.
  PivotTolerance Tolerance(const MatrixStats& stats) const;
  // Converts the figures to the units of the original A.
  void Unscale(EchelonForm& form) const;
  absl::Status Deliver(std::byte* out);

  MatrixOps& ops() { return context_.ops(); }

  ExecutionContext& context_;
  const EchelonPlan& plan_;
  PackedMatrix packed_;
  JobBuffers buffers_;
  double scale_ = 1;
};

absl::Status EchelonJob::ImportMatrix() {
  CROUT_RETURN_IF_ERROR(ops().Import(packed_, A(packed_.cols)));
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  return CheckFinite(context_.report().matrix, packed_, "matrix");
}

absl::StatusOr<MatrixStats> EchelonJob::Statistics(int64_t cols) {
  const AnyMatrix a = A(cols);
  CROUT_RETURN_IF_ERROR(ops().Import({a.data, a.dtype, Layout::kColumnMajor, a.rows, cols}, a));
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  return context_.report().matrix;
}

absl::Status EchelonJob::Multiply(double scale, int64_t first_row, int64_t first_col) {
  AnyMatrix block = A(packed_.cols);
  block.rows -= first_row;
  block.cols -= first_col;
  if (block.rows == 0 || block.cols == 0) return absl::OkStatus();
  block.data += (first_row + first_col * block.ld) * SizeOf(block.dtype);
  const std::vector<double> scales(block.rows, scale);
  double* const row = buffers_[plan_.scales].as<double>();
  CROUT_RETURN_IF_ERROR(ops().CopyToDevice(scales.data(), row, scales.size() * sizeof(double)));
  CROUT_RETURN_IF_ERROR(ops().CopyScaled(block, row, nullptr, block));
  return context_.Synchronize();
}

absl::Status EchelonJob::ScaleIntoRange(const MatrixStats& stats) {
  const SafeRange range = SafeRangeOf(packed_.dtype);
  if (stats.max_abs == 0 || range.contains(stats.max_abs)) return absl::OkStatus();
  // Scales large entries down no more than necessary, to preserve tiny entries beside them. The
  // modulus of a complex entry may be Inf.
  const double largest = std::min(stats.max_abs, std::numeric_limits<double>::max());
  scale_ = NormalizingScale(largest, largest > range.most ? std::ilogb(range.most) - 1 : 0);
  return Multiply(scale_, 0, 0);
}

void EchelonJob::Unscale(EchelonForm& form) const {
  form.tolerance = plan_.options.tolerance.value_or(form.tolerance / scale_);
  if (form.least_pivot) *form.least_pivot /= scale_;
  if (form.largest_rejected) *form.largest_rejected /= scale_;
}

PivotTolerance EchelonJob::Tolerance(const MatrixStats& stats) const {
  if (plan_.options.tolerance) return PivotTolerance{*plan_.options.tolerance * scale_};
  const auto size = static_cast<double>(std::max(packed_.rows, eligible()));
  return {size * 2 * UnitRoundoff(packed_.dtype) * stats.norm_inf, /*follows_growth=*/true};
}

absl::Status EchelonJob::Deliver(std::byte* out) {
  CROUT_ASSIGN_OR_RETURN(const MatrixStats stats, Statistics(packed_.cols));
  if (stats.first_non_finite >= 0) {
    return absl::InvalidArgumentError(absl::StrCat("the echelon form exceeds the range of ",
                                                   ToAbsl(NameOf(packed_.dtype)),
                                                   ". Scale the matrix or use a wider type"));
  }
  std::byte* const delivered = buffers_[plan_.upload].data();
  if (plan_.matrix != plan_.upload) {
    CROUT_RETURN_IF_ERROR(ops().Export(A(packed_.cols), plan_.shape, delivered));
  }
  CROUT_RETURN_IF_ERROR(ops().CopyToHost(delivered, out, plan_.shape.bytes()));
  return context_.Synchronize();
}

absl::StatusOr<EchelonForm> EchelonJob::Run(std::byte* out, StopRequested stop,
                                            KernelTimings& timings) {
  Stopwatch watch;
  SyncOnExit sync(context_);
  CROUT_RETURN_IF_ERROR(Failpoint("echelon.run"));
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  CROUT_RETURN_IF_ERROR(buffers_.Allocate(context_.device().memory()));
  CROUT_RETURN_IF_ERROR(ImportMatrix());
  CROUT_RETURN_IF_ERROR(ScaleIntoRange(context_.report().matrix));
  MatrixStats stats;
  if (eligible() > 0) {
    CROUT_ASSIGN_OR_RETURN(stats, Statistics(eligible()));
  }
  CROUT_ASSIGN_OR_RETURN(
      EchelonForm form,
      plan_.options.reducer->Reduce(context_, A(packed_.cols), eligible(), Tolerance(stats),
                                    buffers_.Span(plan_.workspace), stop));
  form.growth = std::max(1.0, PivotGrowth(form.max_abs_u, stats.max_abs));
  // Only augmented columns of rows without a pivot are multiples of A's; undo their scaling.
  if (scale_ != 1) CROUT_RETURN_IF_ERROR(Multiply(1 / scale_, form.rank(), eligible()));
  Unscale(form);
  timings.solve += watch.Lap();
  CROUT_RETURN_IF_ERROR(Deliver(out));
  timings.device_to_host += watch.Lap();
  sync.Dismiss();
  return form;
}

}  // namespace

absl::StatusOr<EchelonPlan> PlanEchelonForm(const EchelonOptions& options, PackedMatrix shape) {
  if (options.reducer == nullptr) return absl::InvalidArgumentError("the options name no reducer");
  if (options.tolerance && !(*options.tolerance >= 0 && std::isfinite(*options.tolerance))) {
    return absl::InvalidArgumentError(absl::StrCat("the tolerance is ", *options.tolerance,
                                                   "; it must be finite and not negative"));
  }
  if (options.augmented < 0 || options.augmented > shape.cols) {
    return absl::InvalidArgumentError(absl::StrCat("the number of augmented columns is ",
                                                   options.augmented, "; it must be from 0 to ",
                                                   shape.cols));
  }
  EchelonPlan plan;
  plan.options = options;
  plan.shape = shape;
  CROUT_RETURN_IF_ERROR(AddBuffers(plan));
  CROUT_ASSIGN_OR_RETURN(plan.bytes, plan.buffers.Sum());
  plan.seconds = options.reducer->PredictSeconds(shape.dtype, shape.rows, shape.cols);
  return plan;
}

absl::StatusOr<EchelonForm> ReduceToEchelonForm(ExecutionContext& context, const EchelonPlan& plan,
                                                Buffer upload, std::byte* out, StopRequested stop,
                                                KernelTimings& timings) {
  SyncOnExit sync(context);  // `upload` may still be arriving
  CROUT_RETURN_IF_ERROR(CheckUpload(upload.size(), plan.buffers.bytes(plan.upload), "matrix"));
  if (plan.shape.rows == 0 || plan.shape.cols == 0) {
    EchelonForm empty;
    empty.tolerance = plan.options.tolerance.value_or(0);
    return empty;
  }
  EchelonJob job(context, plan, std::move(upload));
  sync.Dismiss();  // Run synchronizes before the job's buffers are destroyed
  return job.Run(out, stop, timings);
}

}  // namespace crout
