// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/handlers/schur_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"
#include "server/engine/plan/solve_step.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/decode_options.h"
#include "server/rpc/codec/encode.h"
#include "server/rpc/codec/names.h"
#include "server/rpc/codec/status.h"
#include "server/rpc/codec/wire.h"

namespace crout {

absl::StatusOr<std::unique_ptr<SchurCall::Plan>> SchurCall::MakePlan(const StreamMessage& first) {
  v1::ComputeSchurComplementHeader header;
  CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
  if (!header.cache().request_id().empty()) {
    return BadField("header.cache.request_id",
                    "ComputeSchurComplement does not support request_id: leave it unset");
  }
  CROUT_ASSIGN_OR_RETURN(insert_, DecodeCacheOptions(header.cache(), tenant_, core_.limits));
  SchurRequest request;
  CROUT_ASSIGN_OR_RETURN(request.matrix, DecodeMatrix(header.matrix(), "header.matrix"));
  CROUT_ASSIGN_OR_RETURN(request.factor, DecodeOptions(header.options()));
  request.solver = SolverName(header.solver());
  request.leading_order = header.leading_order();
  request.keep.assign(header.keep().begin(), header.keep().end());
  request.sets_cache = header.cache().ByteSizeLong() > 0;
  return PlaceJob(core_.engine, request.factor.device,
                  [&](DeviceSlot& slot) { return SchurStep::Create(core_.engine, request, slot); });
}

void SchurCall::Reply(FactorAndComplement answer) {
  const FactorSummary leading = answer.factor.factorization.summary;
  const Complement& complement = answer.complement;
  ObserveQuality(core_, observed_, leading, complement.summary.value_or(SchurSummary()));
  v1::ComputeSchurComplementResponse head = Store(std::move(answer.factor), answer.keeps_factor);
  if (leading.info > 0) {
    Send([head = std::move(head)] { return Serialize(head); });
    return EndAfterReplies(WithReason(absl::FailedPreconditionError(absl::StrCat(
                                          "the leading block (order ", answer.leading_order,
                                          ") is singular: ", DescribeSingularity(leading))),
                                      kReasonSingular));
  }
  *head.mutable_header()->mutable_complement() = EncodeDense(complement.shape);
  v1::ComplementResult result;
  result.set_solver(SolverFromName(complement.solver));
  result.set_device(observed_.device);
  if (complement.summary) {
    result.set_backward_error(complement.summary->backward_error);
    result.set_growth(complement.summary->growth);
    if (complement.summary->is_poor) result.add_warnings(v1::WARNING_POOR_COMPLEMENT);
  }
  EndWithDataAndResult(head, complement.s, result);
}

v1::ComputeSchurComplementResponse SchurCall::Store(NewFactor factor, bool keep) {
  factor.timings = ReplyTimings();
  v1::ComputeSchurComplementResponse first;
  observed_.algorithm = factor.factorization.summary.algorithm;
  if (!keep) {
    *first.mutable_factor() = EncodeWithCounts(DescribeDropped(std::move(factor)));
    return first;
  }
  *first.mutable_factor() = EncodeWithCounts(core_.engine.cache.Insert(std::move(factor), insert_));
  observed_.SetHandle(first.factor().handle());
  observed_.factor_bytes = first.factor().bytes();
  return first;
}

}  // namespace crout
