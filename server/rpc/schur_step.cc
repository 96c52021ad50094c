#include "server/rpc/schur_step.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/algorithm_registry.h"
#include "kernels/jobs/factorize.h"
#include "kernels/util/status_macros.h"
#include "server/rpc/decode.h"
#include "server/rpc/factor_step.h"
#include "server/rpc/names.h"
#include "server/rpc/observe.h"
#include "server/rpc/status.h"

namespace crout {

absl::StatusOr<std::unique_ptr<SchurStep>> SchurStep::Create(
    ServerCore& core, const v1::ComputeSchurComplementHeader& header, DeviceSlot& slot) {
  CROUT_ASSIGN_OR_RETURN(const PayloadSpec spec, DecodePayload(header.matrix(), "header.matrix",
                                                               core.limits, *slot.device));
  auto step = std::unique_ptr<SchurStep>(new SchurStep(core, spec, slot));
  CROUT_ASSIGN_OR_RETURN(step->options_.factor, DecodeOptions(header.options(), spec.shape.dtype));
  if (header.leading_order() < 0) return BadField("header.leading_order", "negative");
  if (header.leading_order() > core.limits.max_n) {
    return BadField(
        "header.leading_order",
        absl::StrCat("larger than the largest dimension of a matrix, ", core.limits.max_n));
  }
  step->options_.leading = header.leading_order();
  step->options_.layout = spec.shape.layout;
  step->request_ = header.options();
  step->solver_ = SolverName(header.solver());
  // A name that the device lacks is refused before the payload, whatever the order will be.
  CROUT_RETURN_IF_ERROR(step->ResolveFor(header.leading_order()));
  return step;
}

absl::Status SchurStep::ResolveFor(int64_t n) {
  const int64_t k = options_.leading;
  FactorizeOptions& factor = options_.factor;
  CROUT_RETURN_IF_ERROR(Resolve(request_, *slot_.device, k, &factor));
  factor.prepare = FindSolverToPrepare(*slot_.device, factor.algorithm->traits().unit_diagonal,
                                       factor.factor_dtype);
  CROUT_ASSIGN_OR_RETURN(
      options_.solver, FindSolver(*slot_.device, solver_, factor.algorithm->traits().unit_diagonal,
                                  factor.factor_dtype, k, n - k));
  return absl::OkStatus();
}

absl::StatusOr<MemoryNeed> SchurStep::Plan() {
  const PackedMatrix& shape = upload_.shape();
  CROUT_RETURN_IF_ERROR(CheckSquare(shape, upload_.field()));
  if (options_.leading > shape.rows) {
    return BadField("header.leading_order",
                    absl::StrCat(options_.leading, ", but the matrix has order ", shape.rows));
  }
  CROUT_RETURN_IF_ERROR(ResolveFor(shape.rows));
  CROUT_ASSIGN_OR_RETURN(plan_, PlanSchur(options_, shape));
  const JobBytes& bytes = plan_->bytes;
  return MemoryNeed{.device = FactorCache::Charge(bytes.peak), .host = bytes.reply + bytes.report};
}

absl::StatusOr<std::optional<NewFactor>> SchurStep::FindSingular() {
  CROUT_RETURN_IF_ERROR(Plan().status());  // its checks
  return crout::FindSingular(core_, slot_, upload_, options_.factor, options_.leading);
}

absl::StatusOr<NewFactor> SchurStep::Run(ExecutionContext& context, StopRequested stop,
                                         CallTimings& timings, Complement* complement) {
  const PackedMatrix& s = plan_->complement;
  CROUT_ASSIGN_OR_RETURN(Buffer out, core_.host_memory.Allocate(s.bytes()));
  CROUT_ASSIGN_OR_RETURN(Buffer matrix, upload_.Take(context, timings));
  KernelTimings kernel;
  NewFactor factor;
  CROUT_ASSIGN_OR_RETURN(
      SchurResult result,
      ComputeSchurComplement(context, *plan_, std::move(matrix), out.data(), stop, kernel));
  factor.factorization = std::move(result.factor);
  timings.factor += kernel.factor;
  timings.solve += kernel.solve;
  timings.device_to_host += kernel.device_to_host;
  const FactorSummary& summary = factor.factorization.summary;
  ObserveFactor(core_, slot_, summary, kernel.factor);
  Reservation report = memory_.host.Split(plan_->bytes.report);
  memory_.device.Shrink(FactorCache::Charge(factor.factorization.parts.bytes()));
  factor.reservation = std::move(memory_.device);
  factor.record = TakeRecord(factor.factorization.summary, std::move(report));
  factor.slot = &slot_;
  *complement = {
      s, std::make_shared<const ReplyData>(ReplyData{std::move(memory_.host), std::move(out)}),
      std::string(options_.solver->name()), result.complement};
  return factor;
}

}  // namespace crout
