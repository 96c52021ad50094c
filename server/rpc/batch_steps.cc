// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/batch_steps.h"

#include <algorithm>
#include <utility>

#include "kernels/jobs/batch_payload.h"
#include "kernels/util/status_macros.h"
#include "server/rpc/codec/encode.h"
#include "server/rpc/codec/status.h"

namespace crout {
namespace {

// Describes a payload that only the job interprets. An upload requires a shape, so the bytes are
// described as a column of 4-byte words.
PayloadSpec BytesOf(size_t bytes) {
  PayloadSpec spec;
  spec.shape = {nullptr, DType::kFloat32, Layout::kColumnMajor,
                static_cast<int64_t>(bytes / SizeOf(DType::kFloat32)), 1};
  return spec;
}

// Offset of the figures in the reply of a solve.
size_t FiguresOffset(size_t value_bytes) {
  return (value_bytes + kMemberAlignment - 1) / kMemberAlignment * kMemberAlignment;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchFactorStep>> BatchFactorStep::Create(ServerCore& core,
                                                                         const v1::BatchSpec& batch,
                                                                         bool keep_matrix,
                                                                         DeviceSlot& slot) {
  CROUT_ASSIGN_OR_RETURN(const BatchExtent extent,
                         DecodeBatch(batch, "header.batch", core.limits, *slot.device));
  auto plan = PlanBatchFactorize({slot.device->batch_lu(), keep_matrix}, extent);
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
      BatchFigures::kSentBytesPerMember * static_cast<size_t>(plan_.extent.members);
  CROUT_ASSIGN_OR_RETURN(Buffer figures, core_.host_memory.Allocate(figure_bytes));
  CROUT_ASSIGN_OR_RETURN(Buffer batch, upload_.Take(context, timings));
  KernelTimings kernel;
  CROUT_ASSIGN_OR_RETURN(Factorization made, FactorizeBatch(context, plan_, std::move(batch),
                                                            figures.data(), stop, kernel));
  timings.Add(kernel);
  core_.metrics.device(static_cast<size_t>(slot_.index))
      .ObserveBatchFactored(plan_.extent.members, made.summary.batch->singular);
  BatchAnswer answer;
  answer.factor = MakeNewFactor(std::move(made), kernel.factor);
  ShrinkToFactor(answer.factor);
  answer.figures = MakeReplyData(std::move(figures), plan_.bytes.reply);
  return answer;
}

absl::StatusOr<std::unique_ptr<BatchSolveStep>> BatchSolveStep::Create(
    ServerCore& core, const BatchSystems& systems, const char* field, const char* bytes_field,
    const FactorSummary& factor, bool has_matrix, DeviceSlot& slot) {
  BatchSolveOptions options = systems.options;
  options.method = slot.device->batch_lu();
  auto plan = PlanBatchSolve(options, factor, has_matrix, systems.rhs);
  // The fields are decoded already, so only the number of bytes can still be invalid.
  if (absl::IsInvalidArgument(plan.status())) return BadField(bytes_field, plan.status().message());
  if (!plan.ok()) return plan.status();
  const PayloadSpec spec = BytesOf(plan->buffers.bytes(plan->upload));
  return std::unique_ptr<BatchSolveStep>(
      new BatchSolveStep(core, spec, field, factor.n, slot, *std::move(plan)));
}

absl::StatusOr<MemoryNeed> BatchSolveStep::Plan() {
  return MemoryNeed{.device = plan_.bytes.peak + promotion_bytes_,
                    .host = plan_.bytes.report + plan_.bytes.reply + kMemberAlignment};
}

absl::StatusOr<BatchSolution> BatchSolveStep::Run(ExecutionContext& context,
                                                  const Factorization& factor, StopRequested stop,
                                                  CallTimings& timings) {
  BatchSolution solution;
  const size_t figures = FiguresOffset(plan_.rhs.bytes);
  CROUT_ASSIGN_OR_RETURN(Buffer out, core_.host_memory.Allocate(figures + plan_.figures_bytes));
  CROUT_ASSIGN_OR_RETURN(Buffer rhs, upload_.Take(context, timings));
  KernelTimings kernel;
  CROUT_ASSIGN_OR_RETURN(solution.summary,
                         SolveBatch(context, plan_, factor, std::move(rhs), out.data(),
                                    out.data() + figures, stop, kernel));
  // Clear the padding between the solutions and the figures. It must not expose other data to the
  // client.
  std::fill(out.data() + plan_.rhs.bytes, out.data() + figures, std::byte{0});
  timings.Add(kernel);
  memory_.device.Release();
  core_.metrics.device(static_cast<size_t>(slot_.index)).ObserveBatchSolved(plan_.rhs.systems);
  if (plan_.options.verify) {
    core_.metrics.ObserveBackwardError(plan_.factor.dtype, solution.summary.backward_error);
  }
  solution.x = MakeReplyData(std::move(out), plan_.bytes.reply + kMemberAlignment);
  return solution;
}

v1::SolveBatchResult BatchSolveStep::Encode(const BatchSolution& solution, int64_t factor_version,
                                            const std::string& device) const {
  v1::SolveBatchResult result;
  if (plan_.options.verify) result.set_backward_error(solution.summary.backward_error);
  result.set_singular(solution.summary.singular);
  result.set_inaccurate(solution.summary.inaccurate);
  result.set_first_inaccurate(solution.summary.first_inaccurate);
  AddWarnings(solution.summary.accuracy_warnings, result.mutable_warnings());
  result.set_factor_version(factor_version);
  result.set_device(device);
  return result;
}

}  // namespace crout
