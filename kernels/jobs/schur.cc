// SPDX-License-Identifier: Apache-2.0

#include "kernels/jobs/schur.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/execution_context.h"
#include "kernels/jobs/factorize.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/numerics/pivot_growth.h"
#include "kernels/numerics/schur_probe.h"
#include "kernels/stop_requested.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"
#include "kernels/util/strings.h"

namespace crout {
namespace {

// One ComputeSchurComplement call. Owns the buffers that enqueued work uses.
class SchurJob {
 public:
  SchurJob(ExecutionContext& context, const SchurPlan& plan, Buffer&& upload)
      : context_(context),
        plan_(plan),
        options_(plan.options),
        n_(plan.shape.rows),
        k_(plan.options.leading),
        packed_(plan.shape),
        buffers_(plan.buffers) {
    packed_.data = upload.data();
    buffers_.Give(plan.upload, std::move(upload));
  }

  absl::StatusOr<SchurResult> Run(std::byte* out, StopRequested stop, KernelTimings& timings);

 private:
  absl::Status ImportMatrix();
  absl::StatusOr<Factorization> FactorLeadingBlock(StopRequested stop, KernelTimings& timings);
  // work := diag(r) A12 in the factor's type; checks for overflow.
  absl::Status FillWork(const double* row_scales);
  // X := A11^-1 A12, from `work`.
  absl::Status SolveForX(const Factorization& factor);
  // A22 := S, and runs the probe.
  absl::Status Eliminate(const Factorization& factor);
  absl::Status Deliver(std::byte* out);
  // Summarizes S as delivered.
  SchurSummary Summarize(const FactorSummary& factor);

  MatrixOps& ops() { return context_.ops(); }
  MemoryResource& memory() { return context_.device().memory(); }
  // The block of A at (row, col).
  AnyMatrix Block(int64_t row, int64_t col, int64_t rows, int64_t cols) const {
    std::byte* data = buffers_[plan_.matrix].data();
    if (rows > 0 && cols > 0) data += (row + col * n_) * SizeOf(packed_.dtype);
    return {data, packed_.dtype, rows, cols, n_};
  }
  AnyMatrix RightBlock(BufferPlan::Id id, DType dtype) const {
    return {buffers_[id].data(), dtype, k_, n_ - k_, k_};
  }
  AnyMatrix Work() const { return RightBlock(plan_.work, options_.factor.factor_dtype); }
  AnyMatrix X() const { return RightBlock(plan_.x, packed_.dtype); }

  ExecutionContext& context_;
  const SchurPlan& plan_;
  const SchurOptions& options_;
  const int64_t n_;
  const int64_t k_;
  PackedMatrix packed_;
  JobBuffers buffers_;
  MatrixStats stats_;  // statistics of A
  double backward_error_ = 0;
};

absl::Status SchurJob::ImportMatrix() {
  CROUT_RETURN_IF_ERROR(buffers_.Allocate(memory(), /*phase=*/0));
  CROUT_RETURN_IF_ERROR(ops().Import(packed_, Block(0, 0, n_, n_)));
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  stats_ = context_.report().matrix;
  return CheckFinite(stats_, packed_, "matrix");
}

absl::StatusOr<Factorization> SchurJob::FactorLeadingBlock(StopRequested stop,
                                                           KernelTimings& timings) {
  const FactorizePlan& factor = plan_.factor;
  CROUT_ASSIGN_OR_RETURN(Buffer leading, memory().Allocate(factor.buffers.bytes(factor.upload)));
  const AnyMatrix copy{leading.data(), packed_.dtype, k_, k_, k_};
  if (k_ > 0) CROUT_RETURN_IF_ERROR(ops().CopyScaled(Block(0, 0, k_, k_), nullptr, nullptr, copy));
  return Factorize(context_, factor, std::move(leading), stop, timings);
}

absl::Status SchurJob::FillWork(const double* row_scales) {
  CROUT_RETURN_IF_ERROR(ops().CopyScaled(Block(0, k_, k_, n_ - k_), row_scales, nullptr, Work()));
  const PackedMatrix packed{Work().data, Work().dtype, Layout::kColumnMajor, k_, n_ - k_};
  CROUT_RETURN_IF_ERROR(ops().Import(packed, Work()));  // computes the statistics
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  if (context_.report().matrix.first_non_finite < 0) return absl::OkStatus();
  // A12 is finite, so an Inf results from the conversion or from scaling.
  return absl::InvalidArgumentError(absl::StrCat(
      "the block to the right of the leading block overflows ", ToAbsl(NameOf(Work().dtype)),
      ", the type of the factor. Scale the matrix or use a wider type"));
}

absl::Status SchurJob::SolveForX(const Factorization& factor) {
  const FactorSummary& summary = factor.summary;
  const double* scales = factor.scales().as<double>();
  CROUT_RETURN_IF_ERROR(FillWork(summary.row_scaled ? scales : nullptr));
  CROUT_RETURN_IF_ERROR(options_.solver->Solve(context_, factor.view(), Op::kNone, 0, Work(),
                                               buffers_.Span(plan_.workspace)));
  if (plan_.x == plan_.work && !summary.col_scaled) return absl::OkStatus();
  return ops().CopyScaled(Work(), summary.col_scaled ? scales + k_ : nullptr, nullptr, X());
}

absl::Status SchurJob::Eliminate(const Factorization& factor) {
  SchurProbe probe(context_, stats_, WideOf(packed_.dtype), n_, k_, buffers_[plan_.probe].data());
  SyncOnExit sync(context_);  // the probe and the factor's storage may be in use, also on an error
  CROUT_RETURN_IF_ERROR(SolveForX(factor));
  CROUT_RETURN_IF_ERROR(probe.Start(Block(0, 0, n_, n_), X()));
  const AnyMatrix s = Block(k_, k_, n_ - k_, n_ - k_);
  CROUT_RETURN_IF_ERROR(ops().Multiply(-1, Op::kNone, Block(k_, 0, n_ - k_, k_), X(), 1, s));
  CROUT_RETURN_IF_ERROR(probe.Finish(s));
  CROUT_ASSIGN_OR_RETURN(backward_error_, probe.BackwardError());
  sync.Dismiss();
  return absl::OkStatus();
}

absl::Status SchurJob::Deliver(std::byte* out) {
  std::byte* const delivered = buffers_[plan_.packed].data();
  const PackedMatrix& shape = plan_.complement;
  CROUT_RETURN_IF_ERROR(ops().Export(Block(k_, k_, n_ - k_, n_ - k_), shape, delivered));
  // Computes the statistics. The largest entry is the same in either layout.
  const AnyMatrix same{delivered, shape.dtype, shape.rows, shape.cols, shape.rows};
  CROUT_RETURN_IF_ERROR(
      ops().Import({delivered, shape.dtype, Layout::kColumnMajor, shape.rows, shape.cols}, same));
  CROUT_RETURN_IF_ERROR(ops().CopyToHost(delivered, out, shape.bytes()));
  return context_.Synchronize();
}

SchurSummary SchurJob::Summarize(const FactorSummary& factor) {
  const MatrixStats& s = context_.report().matrix;
  const double largest =
      s.first_non_finite >= 0 ? std::numeric_limits<double>::infinity() : s.max_abs;
  const double eps =
      std::max(UnitRoundoff(packed_.dtype), UnitRoundoff(options_.factor.factor_dtype));
  SchurSummary summary;
  summary.backward_error = backward_error_;
  summary.growth = std::max(factor.pivot_growth, PivotGrowth(largest, stats_.max_abs));
  // The backward error of the elimination is relative to S, so it is small however much S grew.
  summary.is_poor = IsGrowthHarmful(summary.growth, options_.factor.factor_dtype) ||
                    !(backward_error_ <= kPoorQuality * static_cast<double>(n_) * eps);
  return summary;
}

absl::StatusOr<SchurResult> SchurJob::Run(std::byte* out, StopRequested stop,
                                          KernelTimings& timings) {
  Stopwatch watch;
  SyncOnExit sync(context_);
  const StopScope scope(context_, stop);
  context_.report().ReportColumns(0);  // resets the previous job's count
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  if (n_ > 0) CROUT_RETURN_IF_ERROR(ImportMatrix());
  timings.factor += watch.Lap();
  CROUT_ASSIGN_OR_RETURN(Factorization factor, FactorLeadingBlock(stop, timings));
  if (factor.summary.info > 0 || k_ == n_) return SchurResult{std::move(factor), std::nullopt};
  watch.Lap();  // excludes the time counted by Factorize
  CROUT_RETURN_IF_ERROR(buffers_.Allocate(memory(), /*phase=*/1));
  if (k_ > 0) CROUT_RETURN_IF_ERROR(Eliminate(factor));
  timings.solve += watch.Lap();
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  CROUT_RETURN_IF_ERROR(Deliver(out));
  timings.device_to_host += watch.Lap();
  sync.Dismiss();
  const SchurSummary summary = Summarize(factor.summary);
  return SchurResult{std::move(factor), summary};
}

}  // namespace

absl::StatusOr<SchurResult> ComputeSchurComplement(ExecutionContext& context, const SchurPlan& plan,
                                                   Buffer upload, std::byte* out,
                                                   StopRequested stop, KernelTimings& timings) {
  SyncOnExit sync(context);  // `upload` may still be arriving
  CROUT_RETURN_IF_ERROR(CheckUpload(upload.size(), plan.buffers.bytes(plan.upload), "matrix"));
  SchurJob job(context, plan, std::move(upload));
  sync.Dismiss();  // Run synchronizes before the job's buffers are destroyed
  return job.Run(out, stop, timings);
}

absl::StatusOr<SchurResult> ComputeSchurComplement(ExecutionContext& context, Buffer upload,
                                                   PackedMatrix shape, const SchurOptions& options,
                                                   std::byte* out, StopRequested stop,
                                                   KernelTimings& timings) {
  SyncOnExit sync(context);  // also if planning fails
  CROUT_ASSIGN_OR_RETURN(const SchurPlan plan, PlanSchur(options, shape));
  sync.Dismiss();
  return ComputeSchurComplement(context, plan, std::move(upload), out, stop, timings);
}

}  // namespace crout
