// SPDX-License-Identifier: Apache-2.0

#include "kernels/jobs/batch/batch_factorize.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/execution_context.h"
#include "kernels/jobs/batch/batch_payload.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/stop_requested.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/failpoint.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"

namespace crout {
namespace {

// One FactorizeBatch call. Owns the buffers that enqueued work uses.
class BatchFactorizeJob {
 public:
  BatchFactorizeJob(ExecutionContext& context, const BatchFactorizePlan& plan, Buffer&& upload,
                    std::byte* figures)
      : context_(context),
        plan_(plan),
        figures_(figures),
        host_workspace_(plan.host_workspace),
        buffers_(plan.buffers) {
    buffers_.Give(plan.upload, std::move(upload));
  }

  absl::StatusOr<Factorization> Run(StopRequested stop, KernelTimings& timings);

 private:
  // Reads the sizes of the members and computes their layout.
  absl::Status ReadLayout();
  absl::Status Factor(StopRequested stop);
  absl::Status DownloadFigures();
  Factorization TakeResult();

  ExecutionContext& context_;
  const BatchFactorizePlan& plan_;
  std::byte* const figures_;
  // Read by copies to the device, as is what the method writes to its workspace.
  BatchLayout layout_;
  std::vector<std::byte> host_workspace_;
  std::vector<float> conditions_;  // one per member; written by copies from the device
  JobBuffers buffers_;
};

absl::Status BatchFactorizeJob::ReadLayout() {
  CROUT_ASSIGN_OR_RETURN(const std::vector<MatrixShape> shapes,
                         ReadShapes(context_, buffers_[plan_.upload].data(), plan_.extent.members));
  CROUT_ASSIGN_OR_RETURN(layout_, ComputeLayout(plan_.extent.dtype, shapes));
  return CheckAsDeclared(plan_.extent, layout_.extent);
}

absl::Status BatchFactorizeJob::Factor(StopRequested stop) {
  MatrixOps& ops = context_.ops();
  const Buffer& upload = buffers_[plan_.upload];
  CROUT_RETURN_IF_ERROR(ops.CopyToDevice(layout_.members.data(), buffers_[plan_.members].data(),
                                         layout_.members.size() * sizeof(BatchMember)));
  if (plan_.lu != plan_.upload) {
    CROUT_RETURN_IF_ERROR(
        ops.CopyOnDevice(upload.data(), buffers_[plan_.lu].data(), upload.size()));
  }
  const int64_t members = layout_.extent.members;
  const IrregularBatch lu{buffers_[plan_.lu].data() + BatchValuesOffset(members), layout_.extent,
                          buffers_[plan_.members].as<BatchMember>()};
  const BatchFigures figures(buffers_[plan_.figures].data(), members);
  const BatchFactors factors{buffers_[plan_.ipiv].as<int64_t>(), figures.info, figures.pivot_growth,
                             figures.quality, figures.pivot_condition};
  CROUT_RETURN_IF_ERROR(
      plan_.options.method->Factor(context_, lu, layout_.members, factors,
                                   {buffers_.Span(plan_.workspace), host_workspace_}, stop));
  CROUT_RETURN_IF_ERROR(context_.SynchronizeOrStop(stop));
  return CheckNotStopped(stop);
}

absl::Status BatchFactorizeJob::DownloadFigures() {
  const int64_t members = layout_.extent.members;
  const BatchFigures figures(buffers_[plan_.figures].data(), members);
  MatrixOps& ops = context_.ops();
  const auto count = static_cast<size_t>(members);
  conditions_.resize(count);
  CROUT_RETURN_IF_ERROR(ops.CopyToHost(buffers_[plan_.figures].data(), figures_,
                                       count * BatchFigures::kSentBytesPerMember));
  CROUT_RETURN_IF_ERROR(
      ops.CopyToHost(figures.pivot_condition, conditions_.data(), count * sizeof(float)));
  return context_.Synchronize();
}

// Summarizes the worst values over the members.
BatchSummary Summarize(const BatchLayout& layout, const BatchFigures& figures,
                       std::span<const float> conditions) {
  const DType dtype = layout.extent.dtype;
  BatchSummary summary;
  summary.extent = layout.extent;
  const auto count = [](int64_t i, bool doubtful, int64_t* members, int64_t* first) {
    if (doubtful && (*members)++ == 0) *first = i;
  };
  for (int64_t i = 0; i < layout.extent.members; ++i) {
    summary.pivot_growth = std::max(summary.pivot_growth, figures.pivot_growth[i]);
    summary.quality = std::max(summary.quality, figures.quality[i]);
    if (figures.info[i] > 0) {
      ++summary.singular;
      continue;
    }
    const bool poor = IsPoorFactor(figures.quality[i], figures.pivot_growth[i], dtype);
    count(i, poor, &summary.poor, &summary.first_poor);
    const BatchMember& member = layout.members[i];
    const bool shown = !poor && member.rows == member.cols && member.rows > 0;
    count(i, shown && IsNearlySingular(conditions[i], dtype, member.rows), &summary.nearly_singular,
          &summary.first_nearly_singular);
  }
  return summary;
}

// Returns the summary fields that are common to every batch of the plan.
FactorSummary SummaryOf(const BatchFactorizePlan& plan, const BatchSummary& batch) {
  FactorSummary summary;
  summary.algorithm = std::string(plan.options.method->traits().name);
  summary.n = std::max(batch.extent.max_rows, batch.extent.max_cols);
  summary.factor_dtype = plan.extent.dtype;
  summary.matrix_dtype = plan.extent.dtype;
  summary.pivot_growth = batch.pivot_growth;
  summary.quality = batch.quality;
  summary.batch = batch;
  return summary;
}

Factorization BatchFactorizeJob::TakeResult() {
  Factorization result;
  result.summary = SummaryOf(
      plan_, Summarize(layout_, BatchFigures(figures_, layout_.extent.members), conditions_));
  const auto hand_over = [&](std::string_view name, PartKind kind, BufferPlan::Id id) {
    result.parts.Add(name, kind, buffers_.Take(id));
  };
  if (plan_.lu != plan_.upload) hand_over(kMatrixPart, PartKind::kOperand, plan_.upload);
  hand_over(kLuPart, PartKind::kFactor, plan_.lu);
  hand_over(kIpivPart, PartKind::kFactor, plan_.ipiv);
  hand_over(kMembersPart, PartKind::kFactor, plan_.members);
  hand_over(kFiguresPart, PartKind::kFactor, plan_.figures);
  return result;
}

absl::StatusOr<Factorization> BatchFactorizeJob::Run(StopRequested stop, KernelTimings& timings) {
  Stopwatch watch;
  SyncOnExit sync(context_);
  context_.report().ReportColumns(0);  // resets the previous job's count
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
  CROUT_RETURN_IF_ERROR(ReadLayout());
  CROUT_RETURN_IF_ERROR(buffers_.Allocate(context_.device().memory()));
  CROUT_RETURN_IF_ERROR(Failpoint("factorize.factor"));
  CROUT_RETURN_IF_ERROR(Factor(stop));
  timings.factor += watch.Lap();
  CROUT_RETURN_IF_ERROR(DownloadFigures());
  timings.device_to_host += watch.Lap();
  sync.Dismiss();
  return TakeResult();
}

}  // namespace

absl::StatusOr<BatchFactorizePlan> PlanBatchFactorize(const BatchFactorizeOptions& options,
                                                      BatchExtent extent) {
  if (options.method == nullptr) return absl::InvalidArgumentError("the options name no method");
  CROUT_ASSIGN_OR_RETURN(const size_t batch, BatchBytes(extent));
  extent = WithMaxDiagonals(extent);
  BatchFactorizePlan plan;
  plan.options = options;
  plan.extent = extent;
  BufferPlan& buffers = plan.buffers;
  CROUT_ASSIGN_OR_RETURN(const size_t members, BatchMembersBytes(extent.members));
  CROUT_ASSIGN_OR_RETURN(const size_t ipiv, MatrixBytes(extent.diagonals, 1, DType::kFloat64));
  CROUT_ASSIGN_OR_RETURN(const BatchLu::WorkspaceBytes workspace,
                         options.method->FactorWorkspaceBytes(extent));
  const size_t figures = BatchFigures::kBytesPerMember * static_cast<size_t>(extent.members);
  constexpr Lifetime kKept = {0, Lifetime::kInResult};
  plan.upload = buffers.Add("upload", BufferKind::kUpload, batch, kKept);
  plan.lu = options.keep_matrix ? buffers.Add("factors", batch, kKept) : plan.upload;
  plan.ipiv = buffers.Add("ipiv", ipiv, kKept);
  plan.members = buffers.Add("members", members, kKept);
  plan.figures = buffers.Add("figures", figures, kKept);
  plan.workspace = buffers.Add("workspace", workspace.device);
  plan.host_workspace = workspace.host;
  const auto count = static_cast<size_t>(extent.members);
  buffers.Add("layout", BufferKind::kReport,
              BatchLayoutBytes(extent.members) + workspace.host + count * sizeof(float));
  buffers.Add("reply", BufferKind::kReply, BatchFigures::kSentBytesPerMember * count);
  CROUT_ASSIGN_OR_RETURN(plan.bytes, buffers.Sum());
  plan.seconds = options.method->PredictFactorSeconds(extent);
  return plan;
}

FactorSummary ExpectedSummary(const BatchFactorizePlan& plan) {
  return SummaryOf(plan, {.extent = plan.extent});
}

absl::StatusOr<Factorization> FactorizeBatch(ExecutionContext& context,
                                             const BatchFactorizePlan& plan, Buffer upload,
                                             std::byte* figures, StopRequested stop,
                                             KernelTimings& timings) {
  SyncOnExit sync(context);  // `upload` may still be arriving
  CROUT_RETURN_IF_ERROR(CheckUpload(upload.size(), plan.buffers.bytes(plan.upload), "batch"));
  if (plan.extent.members == 0) {
    CROUT_RETURN_IF_ERROR(CheckAsDeclared(plan.extent, {.dtype = plan.extent.dtype}));
    Factorization empty;
    empty.summary = ExpectedSummary(plan);
    return empty;
  }
  BatchFactorizeJob job(context, plan, std::move(upload), figures);
  sync.Dismiss();  // Run synchronizes before the job's buffers are destroyed
  return job.Run(stop, timings);
}

BatchView ViewBatch(const Factorization& factorization) {
  const BatchExtent& extent = factorization.summary.batch->extent;
  const FactorParts& parts = factorization.parts;
  const auto* const members = parts[kMembersPart].as<BatchMember>();
  const auto batch_in = [&](const Buffer& block) {
    if (!block) return IrregularBatch{nullptr, extent, members};
    return IrregularBatch{block.data() + BatchValuesOffset(extent.members), extent, members};
  };
  const BatchFigures figures(parts[kFiguresPart].data(), extent.members);
  return {batch_in(factorization.lu()),
          batch_in(factorization.matrix()),
          {factorization.ipiv().as<int64_t>(), figures.info, figures.pivot_growth, figures.quality,
           figures.pivot_condition}};
}

}  // namespace crout
