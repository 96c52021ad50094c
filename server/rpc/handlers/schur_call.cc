// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/handlers/schur_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"
#include "server/engine/plan/solve_step.h"
#include "server/rpc/codec/decode_cache.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/decode_options.h"
#include "server/rpc/codec/encode.h"
#include "server/rpc/codec/names.h"
#include "server/rpc/codec/status.h"
#include "server/rpc/codec/wire.h"

namespace crout {

absl::StatusOr<std::vector<PayloadStep*>> SchurCall::Start(const StreamMessage& first) {
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
  CROUT_ASSIGN_OR_RETURN(schur_,
                         PlaceStep(core_.engine, request.factor.device, [&](DeviceSlot& slot) {
                           return SchurStep::Create(core_.engine, request, slot);
                         }));
  return std::vector<PayloadStep*>{schur_.get()};
}

void SchurCall::ReleaseResources() {
  UploadCall::ReleaseResources();
  schur_.reset();
}

absl::StatusOr<FactorAndComplement> SchurCall::Run(ExecutionContext& context,
                                                   CallTimings& timings) {
  FactorAndComplement answer;
  CROUT_ASSIGN_OR_RETURN(answer.factor,
                         schur_->Run(
                             context, [&] { return StopFactoring(context, schur_->leading()); },
                             timings, &answer.complement));
  return answer;
}

absl::StatusOr<std::optional<FactorAndComplement>> SchurCall::FindSingular() {
  CROUT_ASSIGN_OR_RETURN(std::optional<NewFactor> factor, schur_->FindSingular());
  if (!factor) return std::optional<FactorAndComplement>();
  return std::optional(FactorAndComplement{*std::move(factor), {}});
}

void SchurCall::Reply(FactorAndComplement answer) {
  const FactorSummary leading = answer.factor.factorization.summary;
  const Complement& complement = answer.complement;
  ObserveQuality(core_, observed_, leading, complement.summary.value_or(SchurSummary()));
  v1::ComputeSchurComplementResponse head = Store(std::move(answer.factor));
  if (leading.info > 0) return ReplySingular(std::move(head), leading);
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

v1::ComputeSchurComplementResponse SchurCall::Store(NewFactor factor) {
  factor.timings = ReplyTimings();
  v1::ComputeSchurComplementResponse first;
  observed_.algorithm = factor.factorization.summary.algorithm;
  if (schur_->sparse()) {
    *first.mutable_factor() = EncodeWithCounts(DescribeDropped(std::move(factor)));
    return first;
  }
  *first.mutable_factor() = EncodeWithCounts(core_.engine.cache.Insert(std::move(factor), insert_));
  observed_.SetHandle(first.factor().handle());
  observed_.factor_bytes = first.factor().bytes();
  return first;
}

void SchurCall::ReplySingular(v1::ComputeSchurComplementResponse first,
                              const FactorSummary& summary) {
  const absl::Status status = WithReason(
      absl::FailedPreconditionError(absl::StrCat("the leading block (order ", schur_->leading(),
                                                 ") is singular: ", DescribeSingularity(summary))),
      kReasonSingular);
  Send([first = std::move(first)] { return Serialize(first); });
  EndAfterReplies(status);
}

}  // namespace crout
