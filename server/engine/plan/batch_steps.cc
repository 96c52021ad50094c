// SPDX-License-Identifier: Apache-2.0

#include "server/engine/plan/batch_steps.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/jobs/batch/batch_payload.h"
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"

namespace crout {
namespace {

// Offset of the figures in the reply of a solve.
size_t FiguresOffset(size_t value_bytes) {
  return (value_bytes + kMemberAlignment - 1) / kMemberAlignment * kMemberAlignment;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchFactorStep>> BatchFactorStep::Create(Engine& engine,
                                                                         const BatchExtent& batch,
                                                                         bool keep_matrix,
                                                                         DeviceSlot& slot) {
  if (slot.device->batch_lu() == nullptr) {
    return absl::UnimplementedError(absl::StrCat("header.batch: device ", slot.device->info().name,
                                                 " does not support batches"));
  }
  CROUT_RETURN_IF_ERROR(CheckSupported(*slot.device, batch.dtype, "header.batch"));
  auto plan = PlanBatchFactorize({slot.device->batch_lu(), keep_matrix}, batch);
  if (!plan.ok()) return BadField("header.batch", plan.status().message());
  const PayloadSpec spec = OpaquePayload(plan->buffers.bytes(plan->upload));
  return std::unique_ptr<BatchFactorStep>(
      new BatchFactorStep(engine, spec, slot, *std::move(plan)));
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
  CROUT_ASSIGN_OR_RETURN(Buffer figures, engine_.host_memory.Allocate(figure_bytes));
  CROUT_ASSIGN_OR_RETURN(Buffer batch, upload_.Take(context, timings));
  KernelTimings kernel;
  CROUT_ASSIGN_OR_RETURN(Factorization made, FactorizeBatch(context, plan_, std::move(batch),
                                                            figures.data(), stop, kernel));
  timings.Add(kernel);
  engine_.events.OnBatchFactor(slot_, plan_.extent.members, made.summary.batch->singular);
  BatchAnswer answer;
  answer.factor = MakeNewFactor(std::move(made), kernel.factor);
  ShrinkToFactor(answer.factor);
  answer.figures = MakeReplyData(std::move(figures), plan_.bytes.reply);
  return answer;
}

absl::StatusOr<std::unique_ptr<BatchSolveStep>> BatchSolveStep::Create(
    Engine& engine, const BatchSystems& systems, const char* field, const char* bytes_field,
    const FactorSummary& factor, bool has_matrix, DeviceSlot& slot) {
  BatchSolveOptions options = systems.options;
  options.method = slot.device->batch_lu();
  auto plan = PlanBatchSolve(options, factor, has_matrix, systems.rhs);
  // The fields are decoded already, so only the number of bytes can still be invalid.
  if (absl::IsInvalidArgument(plan.status())) return BadField(bytes_field, plan.status().message());
  if (!plan.ok()) return plan.status();
  const PayloadSpec spec = OpaquePayload(plan->buffers.bytes(plan->upload));
  return std::unique_ptr<BatchSolveStep>(
      new BatchSolveStep(engine, spec, field, factor.n, slot, *std::move(plan)));
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
  CROUT_ASSIGN_OR_RETURN(Buffer out, engine_.host_memory.Allocate(figures + plan_.figures_bytes));
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
  engine_.events.OnBatchSolve(slot_, plan_.rhs.systems);
  solution.verified = plan_.options.verify;
  if (solution.verified) {
    engine_.events.OnBackwardError(plan_.factor.dtype, solution.summary.backward_error);
  }
  solution.x = MakeReplyData(std::move(out), plan_.bytes.reply + kMemberAlignment);
  return solution;
}

}  // namespace crout
