// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/handlers/echelon_call.h"

#include "kernels/numerics/judgment.h"
#include "kernels/util/status_macros.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/encode.h"
#include "server/rpc/observe.h"

namespace crout {

absl::StatusOr<std::unique_ptr<EchelonCall::Plan>> EchelonCall::MakePlan(
    const StreamMessage& first) {
  v1::ReduceToEchelonFormHeader header;
  CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
  EchelonRequest request;
  CROUT_ASSIGN_OR_RETURN(request.matrix, DecodeMatrix(header.matrix(), "header.matrix"));
  request.augmented_columns = header.augmented_columns();
  if (header.has_tolerance()) request.tolerance = header.tolerance();
  return PlaceJob(core_.engine, header.device(), [&](DeviceSlot& slot) {
    return EchelonStep::Create(core_.engine, request, slot);
  });
}

void EchelonCall::Reply(ReducedMatrix reduced) {
  const bool poor = IsGrowthHarmful(reduced.form.growth, reduced.shape.dtype);
  if (poor) LogPoorEchelonForm(core_, observed_, reduced.form);
  v1::ReduceToEchelonFormResponse head;
  *head.mutable_header()->mutable_form() = EncodeDense(reduced.shape);
  v1::EchelonFormResult result;
  result.set_rank(reduced.form.rank());
  result.mutable_pivot_columns()->Assign(reduced.form.pivot_columns.begin(),
                                         reduced.form.pivot_columns.end());
  result.set_tolerance(reduced.form.tolerance);
  if (reduced.form.least_pivot) result.set_least_pivot(*reduced.form.least_pivot);
  if (reduced.form.largest_rejected) result.set_largest_rejected(*reduced.form.largest_rejected);
  result.set_pivot_growth(reduced.form.growth);
  if (poor) result.add_warnings(v1::WARNING_POOR_ECHELON_FORM);
  result.set_device(observed_.device);
  EndWithDataAndResult(head, reduced.data, result);
}

}  // namespace crout
