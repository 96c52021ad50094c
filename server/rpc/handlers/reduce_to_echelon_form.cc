// SPDX-License-Identifier: Apache-2.0

// ReduceToEchelonForm: sends the reduced row echelon form of a matrix.
#include <memory>

#include "kernels/numerics/accuracy_warnings.h"
#include "kernels/util/status_macros.h"
#include "server/engine/plan/echelon_step.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/encode.h"
#include "server/rpc/handlers/handlers.h"
#include "server/rpc/stream/job_handler.h"

namespace crout {
namespace {

class EchelonHandler final
    : public JobHandler<ReducedMatrix, v1::ReduceToEchelonFormResponse, v1::PHASE_SOLVE> {
 public:
  using JobHandler::JobHandler;

 private:
  absl::StatusOr<std::unique_ptr<Plan>> MakePlan(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    v1::ReduceToEchelonFormHeader header;
    CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
    EchelonRequest request;
    CROUT_ASSIGN_OR_RETURN(request.matrix, DecodeMatrix(header.matrix(), "matrix"));
    request.augmented_columns = header.augmented_columns();
    if (header.has_tolerance()) request.tolerance = header.tolerance();
    Engine& engine = call_.core().engine;
    return PlaceJob(engine, header.device(), first.device(),
                    [&](DeviceSlot& slot) { return EchelonStep::Create(engine, request, slot); });
  }

  void Reply(ReducedMatrix reduced) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    const EchelonForm& form = reduced.form;
    const bool poor = IsGrowthHarmful(form.growth, reduced.shape.dtype);
    if (poor) call_.core().observer.PoorEchelonForm(call_.observed(), form);
    v1::ReduceToEchelonFormResponse head;
    *head.mutable_header()->mutable_form() = EncodeDense(reduced.shape);
    v1::EchelonFormResult result;
    result.set_rank(form.rank());
    result.mutable_pivot_columns()->Assign(form.pivot_columns.begin(), form.pivot_columns.end());
    result.set_tolerance(form.tolerance);
    if (form.least_pivot) result.set_least_pivot(*form.least_pivot);
    if (form.largest_rejected) result.set_largest_rejected(*form.largest_rejected);
    result.set_pivot_growth(form.growth);
    if (poor) result.add_warnings(v1::WARNING_POOR_ECHELON_FORM);
    result.set_device(call_.observed().device);
    call_.EndWithDataAndResult(head, reduced.data, result);
  }
};

}  // namespace

std::unique_ptr<StreamHandler> MakeReduceToEchelonForm(StreamCall& call) {
  return std::make_unique<EchelonHandler>(call);
}

}  // namespace crout
