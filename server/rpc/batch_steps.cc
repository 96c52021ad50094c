#include "server/rpc/batch_steps.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/jobs/batch_payload.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"
#include "server/rpc/decode.h"
#include "server/rpc/observe.h"
#include "server/rpc/status.h"

namespace crout {
namespace {

// Bytes that only the job can read, as words of four: an upload has a shape.
PayloadSpec BytesOf(size_t bytes) {
  PayloadSpec spec;
  spec.shape = {nullptr, DType::kFloat32, Layout::kColumnMajor,
                static_cast<int64_t>(bytes / SizeOf(DType::kFloat32)), 1};
  return spec;
}

// Where the figures of a solve begin in its reply.
size_t FiguresOffset(size_t value_bytes) {
  return (value_bytes + kMemberAlignment - 1) / kMemberAlignment * kMemberAlignment;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchFactorStep>> BatchFactorStep::Create(
    ServerCore& core, const v1::FactorizeBatchHeader& header, DeviceSlot& slot) {
  CROUT_ASSIGN_OR_RETURN(const BatchExtent extent,
                         DecodeBatch(header.batch(), "header.batch", core.limits, *slot.device));
  auto plan = PlanBatchFactorize({slot.device->batch_lu(), !header.drop_matrix()}, extent);
  if (!plan.ok()) return BadField("header.batch", plan.status().message());
  const PayloadSpec spec = BytesOf(plan->buffers.bytes(plan->upload));
  return std::unique_ptr<BatchFactorStep>(new BatchFactorStep(core, spec, slot, *std::move(plan)));
}

absl::StatusOr<MemoryNeed> BatchFactorStep::Plan() {
  return MemoryNeed{.device = FactorCache::Charge(plan_.bytes.peak),
                    .host = plan_.bytes.report + plan_.bytes.reply};
}

int64_t BatchFactorStep::order() { return std::max(plan_.extent.max_rows, plan_.extent.max_cols); }

absl::StatusOr<BatchAnswer> BatchFactorStep::Run(ExecutionContext& context, StopRequested stop,
                                                 CallTimings& timings) {
  const size_t figure_bytes =
      BatchFigures::kBytesPerMember * static_cast<size_t>(plan_.extent.members);
  CROUT_ASSIGN_OR_RETURN(Buffer figures, core_.host_memory.Allocate(figure_bytes));
  CROUT_ASSIGN_OR_RETURN(Buffer batch, upload_.Take(context, timings));
  KernelTimings kernel;
  BatchAnswer answer;
  CROUT_ASSIGN_OR_RETURN(
      answer.factor.factorization,
      FactorizeBatch(context, plan_, std::move(batch), figures.data(), stop, kernel));
  timings.factor += kernel.factor;
  timings.device_to_host += kernel.device_to_host;
  const Factorization& made = answer.factor.factorization;
  ObserveFactor(core_, slot_, made.summary, kernel.factor);
  memory_.device.Shrink(FactorCache::Charge(made.parts.bytes()));
  memory_.host.Shrink(plan_.bytes.reply);
  answer.factor.reservation = std::move(memory_.device);
  answer.factor.slot = &slot_;
  answer.figures =
      std::make_shared<const ReplyData>(ReplyData{std::move(memory_.host), std::move(figures)});
  return answer;
}

absl::StatusOr<std::unique_ptr<BatchSolveStep>> BatchSolveStep::Create(
    ServerCore& core, const v1::SolveBatchHeader& header, FactorCache::Pin& factor) {
  const FactorSummary& summary = factor.summary();
  const Device& device = *factor.slot().device;
  CROUT_ASSIGN_OR_RETURN(BatchSolveOptions options, DecodeOptions(header, summary));
  options.method = device.batch_lu();
  const BatchRightHandSides rhs = {header.systems(), static_cast<size_t>(header.value_bytes())};
  CROUT_ASSIGN_OR_RETURN(BatchSolvePlan plan,
                         PlanBatchSolve(options, summary, factor.has_matrix(), rhs));
  const PayloadSpec spec = BytesOf(plan.buffers.bytes(plan.upload));
  return std::unique_ptr<BatchSolveStep>(new BatchSolveStep(core, spec, factor, std::move(plan)));
}

absl::StatusOr<MemoryNeed> BatchSolveStep::Plan() {
  return MemoryNeed{.device = plan_.bytes.peak + promotion_bytes_,
                    .host = plan_.bytes.report + plan_.bytes.reply + kMemberAlignment};
}

absl::StatusOr<BatchSolveAnswer> BatchSolveStep::Run(ExecutionContext& context, StopRequested stop,
                                                     CallTimings& timings) {
  Stopwatch watch;
  BatchSolveAnswer answer;
  CROUT_ASSIGN_OR_RETURN(
      const Factorization* factor,
      factor_.OnDevice(context, memory_.device.Split(promotion_bytes_), &answer.promoted));
  timings.host_to_device += watch.Lap();
  const size_t figures = FiguresOffset(plan_.rhs.bytes);
  CROUT_ASSIGN_OR_RETURN(Buffer out, core_.host_memory.Allocate(figures + plan_.figures_bytes));
  CROUT_ASSIGN_OR_RETURN(Buffer rhs, upload_.Take(context, timings));
  KernelTimings kernel;
  CROUT_ASSIGN_OR_RETURN(answer.summary,
                         SolveBatch(context, plan_, *factor, std::move(rhs), out.data(),
                                    out.data() + figures, stop, kernel));
  timings.solve += kernel.solve;
  timings.device_to_host += kernel.device_to_host;
  memory_.device.Release();
  memory_.host.Shrink(plan_.bytes.reply + kMemberAlignment);
  if (verifies()) {
    core_.metrics.ObserveBackwardError(plan_.factor.dtype, answer.summary.backward_error);
  }
  answer.x = std::make_shared<const ReplyData>(ReplyData{std::move(memory_.host), std::move(out)});
  return answer;
}

}  // namespace crout
