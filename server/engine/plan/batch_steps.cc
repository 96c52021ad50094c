// SPDX-License-Identifier: Apache-2.0

#include "server/engine/plan/batch_steps.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/jobs/batch/batch_payload.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"
#include "server/engine/error.h"

namespace crout {
namespace {

// Offset of the figures in the reply of a solve.
size_t FiguresOffset(size_t value_bytes) {
  return (value_bytes + kMemberAlignment - 1) / kMemberAlignment * kMemberAlignment;
}

absl::Status RefuseOption(absl::string_view field, absl::string_view name) {
  return BadField(absl::StrCat(field, ".", name), "batches do not support it: leave it unset");
}

absl::Status CheckOptions(const FactorRequest& request, const BatchLu& method) {
  if (request.names_algorithm() && request.algorithm != method.name()) {
    return BadField("options.algorithm",
                    absl::StrCat(request.algorithm, " factors no batches: leave it unset, or name ",
                                 ToAbsl(method.name())));
  }
  const std::pair<bool, const char*> option_uses[] = {
      {request.factor_dtype.has_value(), "factor_dtype"},
      {request.precision != RequestedPrecision::kFactorType, "precision"},
      {request.equilibrate != EquilibrateMode::kAuto, "equilibrate"},
      {request.parameters.has_value(), "parameters"},
      {request.pivot_threshold != 0, "pivot_threshold"},
      {request.condition, "condition"},
      {request.determinant, "determinant"},
  };
  for (const auto& [is_set, name] : option_uses) {
    if (is_set) return RefuseOption("options", name);
  }
  return absl::OkStatus();
}

absl::Status CheckOptions(const SolveRequest& request, absl::string_view field) {
  const SolveOptions& options = request.options;
  const std::pair<bool, const char*> option_uses[] = {
      {request.names_solver(), "solver"},
      {options.error_bound, "error_bound"},
      {options.max_refinement_steps != 0, "max_refinement_steps"},
      {options.solver_tolerance != 0, "solver_tolerance"},
      {options.componentwise_error, "componentwise_error"},
      {options.refine_componentwise, "refine_componentwise"},
  };
  for (const auto& [is_set, name] : option_uses) {
    if (is_set) return RefuseOption(field, name);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchFactorStep>> BatchFactorStep::Create(
    Engine& engine, const MatrixSpec& matrix, const FactorRequest& request, DeviceSlot& slot) {
  const BatchExtent& batch = *matrix.batch;
  const BatchLu* const method = slot.device->batch_lu();
  if (method == nullptr) {
    return FieldError(
        absl::StatusCode::kUnimplemented, "matrix.batch",
        absl::StrCat("device ", slot.device->info().name, " does not support batches"));
  }
  CROUT_RETURN_IF_ERROR(CheckOptions(request, *method));
  CROUT_RETURN_IF_ERROR(CheckDimension(batch.max_rows, "matrix.batch.max_rows", engine.limits));
  CROUT_RETURN_IF_ERROR(CheckDimension(batch.max_cols, "matrix.batch.max_cols", engine.limits));
  CROUT_RETURN_IF_ERROR(CheckSupported(*slot.device, batch.dtype, "matrix.batch"));
  auto plan = PlanBatchFactorize({method, request.keep_matrix}, batch);
  if (!plan.ok()) return BadField("matrix.batch", plan.status().message());
  const PayloadSpec spec = OpaquePayload(plan->buffers.bytes(plan->upload));
  return std::unique_ptr<BatchFactorStep>(
      new BatchFactorStep(engine, spec, slot, *std::move(plan)));
}

absl::StatusOr<MemoryNeed> BatchFactorStep::Plan() {
  return MemoryNeed{.device = FactorCache::Charge(plan_.bytes.peak),
                    .host = plan_.bytes.report + plan_.bytes.reply};
}

int64_t BatchFactorStep::order() { return std::max(plan_.extent.max_rows, plan_.extent.max_cols); }

absl::StatusOr<FactorResult> BatchFactorStep::Run(ExecutionContext& context,
                                                  const JobControl& control, CallTimings& timings) {
  const size_t figure_bytes =
      BatchFigures::kSentBytesPerMember * static_cast<size_t>(plan_.extent.members);
  CROUT_ASSIGN_OR_RETURN(Buffer figures, engine_.host_memory.Allocate(figure_bytes));
  CROUT_ASSIGN_OR_RETURN(Buffer batch, upload_.Take(context, timings));
  KernelTimings kernel;
  CROUT_ASSIGN_OR_RETURN(Factorization made, FactorizeBatch(context, plan_, std::move(batch),
                                                            figures.data(), control.stop, kernel));
  timings.Add(kernel);
  engine_.events.OnBatchFactor(slot_, plan_.extent.members, made.summary.batch->singular);
  FactorResult result;
  result.factor = MakeNewFactor(std::move(made), kernel.factor);
  ShrinkToFactor(result.factor);
  result.figures = MakeReplyData(std::move(figures), plan_.bytes.reply);
  return result;
}

absl::StatusOr<std::unique_ptr<BatchSolveStep>> BatchSolveStep::Create(
    Engine& engine, const MatrixSpec& rhs, const SolveRequest& request, absl::string_view field,
    DeviceSlot& slot, const ExpectedFactor& expected, absl::StatusCode mismatch) {
  const FactorSummary& factor = expected.summary;
  if (!rhs.batch_rhs) {
    return FieldError(mismatch, "rhs",
                      "the factor is of a batch: send the right-hand sides as batch_rhs");
  }
  CROUT_RETURN_IF_ERROR(CheckOptions(request, field));
  if (rhs.shape.dtype != factor.factor_dtype) {
    return BadField("rhs.batch_rhs.dtype",
                    absl::StrCat("the batch is ", ToAbsl(NameOf(factor.factor_dtype)), ", not ",
                                 ToAbsl(NameOf(rhs.shape.dtype))));
  }
  const int64_t members = factor.batch->extent.members;
  if (rhs.batch_rhs->systems < 0 || rhs.batch_rhs->systems > members) {
    return BadField("rhs.batch_rhs.systems",
                    absl::StrCat("right-hand sides for ", rhs.batch_rhs->systems,
                                 " members of a batch of ", members));
  }
  const BatchSolveOptions options = {.method = slot.device->batch_lu(),
                                     .op = request.options.op,
                                     .verify = request.options.verify && expected.has_matrix};
  auto plan = PlanBatchSolve(options, factor, expected.has_matrix, *rhs.batch_rhs);
  // Only the number of bytes can still be invalid.
  if (absl::IsInvalidArgument(plan.status())) {
    return BadField("rhs.batch_rhs.value_bytes", plan.status().message());
  }
  if (!plan.ok()) return plan.status();
  const PayloadSpec spec = OpaquePayload(plan->buffers.bytes(plan->upload));
  return std::unique_ptr<BatchSolveStep>(
      new BatchSolveStep(engine, spec, factor.n, slot, *std::move(plan)));
}

absl::StatusOr<MemoryNeed> BatchSolveStep::Plan() {
  return MemoryNeed{.device = plan_.bytes.peak + promotion_bytes_,
                    .host = plan_.bytes.report + plan_.bytes.reply + kMemberAlignment};
}

absl::StatusOr<Solution> BatchSolveStep::Run(ExecutionContext& context, const Factorization& factor,
                                             StopRequested stop, CallTimings& timings) {
  Solution solution;
  const size_t figures = FiguresOffset(plan_.rhs.bytes);
  CROUT_ASSIGN_OR_RETURN(Buffer out, engine_.host_memory.Allocate(figures + plan_.figures_bytes));
  CROUT_ASSIGN_OR_RETURN(Buffer rhs, upload_.Take(context, timings));
  KernelTimings kernel;
  CROUT_ASSIGN_OR_RETURN(solution.batch,
                         SolveBatch(context, plan_, factor, std::move(rhs), out.data(),
                                    out.data() + figures, stop, kernel));
  // Clear the padding between the solutions and the figures. It must not expose other data to the
  // client.
  std::fill(out.data() + plan_.rhs.bytes, out.data() + figures, std::byte{0});
  timings.Add(kernel);
  memory_.device.Release();
  engine_.events.OnBatchSolve(slot_, plan_.rhs.systems);
  solution.summary.solver = plan_.options.method->name();
  solution.summary.accuracy_warnings = solution.batch->accuracy_warnings;
  if (plan_.options.verify) {
    solution.summary.backward_error = solution.batch->backward_error;
    engine_.events.OnBackwardError(plan_.factor.dtype, solution.batch->backward_error);
  }
  solution.x = MakeReplyData(std::move(out), plan_.bytes.reply + kMemberAlignment);
  return solution;
}

}  // namespace crout
