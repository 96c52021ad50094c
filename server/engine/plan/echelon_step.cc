// SPDX-License-Identifier: Apache-2.0

#include "server/engine/plan/echelon_step.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"

namespace crout {

absl::StatusOr<std::unique_ptr<EchelonStep>> EchelonStep::Create(Engine& engine,
                                                                 const EchelonRequest& request,
                                                                 DeviceSlot& slot) {
  CROUT_ASSIGN_OR_RETURN(const PayloadSpec spec,
                         CheckPayload(request.matrix, "matrix", engine.limits, *slot.device));
  auto step = std::unique_ptr<EchelonStep>(new EchelonStep(engine, spec, slot));
  EchelonOptions& options = step->options_;
  options.reducer = slot.device->echelon_reducer();
  if (options.reducer == nullptr || !options.reducer->SupportsDense(spec.shape.dtype)) {
    return absl::UnimplementedError(absl::StrCat("device '", slot.device->info().name,
                                                 "' has no method that reduces matrices of this "
                                                 "type to echelon form: choose another device"));
  }
  options.augmented = request.augmented_columns;
  if (options.augmented < 0)
    return BadField("augmented_columns",
                    absl::StrCat(options.augmented, " is negative: send 0 or more"));
  if (request.tolerance && !(*request.tolerance >= 0 && std::isfinite(*request.tolerance))) {
    return BadField(
        "tolerance",
        absl::StrCat(*request.tolerance,
                     " is not finite or is negative: send a tolerance of 0 or more, or leave it "
                     "out"));
  }
  options.tolerance = request.tolerance;
  return step;
}

absl::StatusOr<MemoryNeed> EchelonStep::Plan() {
  const PackedMatrix& shape = upload_.shape();
  if (options_.augmented > shape.cols) {
    return BadField("augmented_columns", absl::StrCat(options_.augmented, ", but the matrix has ",
                                                      shape.cols, " columns"));
  }
  CROUT_ASSIGN_OR_RETURN(plan_, PlanEchelonForm(options_, shape));
  return MemoryNeed{.device = plan_->bytes.peak, .host = plan_->bytes.reply};
}

absl::StatusOr<ReducedMatrix> EchelonStep::Run(ExecutionContext& context, const JobControl& control,
                                               CallTimings& timings) {
  CROUT_ASSIGN_OR_RETURN(Buffer out, engine_.host_memory.Allocate(plan_->shape.bytes()));
  CROUT_ASSIGN_OR_RETURN(Buffer matrix, upload_.Take(context, timings));
  KernelTimings kernel;
  ReducedMatrix reduced;
  CROUT_ASSIGN_OR_RETURN(reduced.form, ReduceToEchelonForm(context, *plan_, std::move(matrix),
                                                           out.data(), control.stop, kernel));
  timings.Add(kernel);
  reduced.shape = plan_->shape;
  reduced.data = MakeReplyData(std::move(out), plan_->bytes.reply);
  return reduced;
}

}  // namespace crout
