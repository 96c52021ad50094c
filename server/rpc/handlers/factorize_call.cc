// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/handlers/factorize_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"
#include "server/engine/cache/acquire.h"
#include "server/engine/error.h"
#include "server/engine/plan/solve_step.h"
#include "server/rpc/codec/decode_cache.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/decode_options.h"
#include "server/rpc/codec/encode.h"
#include "server/rpc/codec/status.h"
#include "server/rpc/codec/wire.h"

namespace crout {

absl::StatusOr<NewFactor> FactoringCall::Run(ExecutionContext& context, CallTimings& timings) {
  const int64_t n = factor_->order();
  return factor_->Run(
      context, [&] { return StopFactoring(context, n); }, timings);
}

absl::Status FactoringCall::AddToBatch(ExecutionContext& /*context*/, DynamicBatchSystem& system,
                                       CallTimings& /*timings*/) {
  factor_->AddToBatch(system);
  return absl::OkStatus();
}

absl::StatusOr<NewFactor> FactoringCall::ExtractFromBatch(DynamicBatchSystem& system,
                                                          const DynamicBatchTimings& batch,
                                                          CallTimings& timings) {
  timings.factor += batch.factor;
  return factor_->ExtractFromBatch(system, batch.factor);
}

void FactoringCall::Reply(NewFactor factor) {
  factor.timings = ReplyTimings();
  ObserveQuality(core_, observed_, factor.factorization.summary);
  const absl::StatusOr<FactorInfo> info = Store(std::move(factor));
  if (!info.ok()) return End(info.status());
  SendFactor(*info);
}

void FactoringCall::SendFactor(const FactorInfo& info) {
  observed_.SetHandle(info.handle.ToString());
  observed_.algorithm = info.summary.algorithm;
  observed_.factor_bytes = info.bytes;
  Send([this, factor = EncodeWithCounts(info)] { return Encode(factor); });
  End(absl::OkStatus());
}

void FactoringCall::ReleaseResources() {
  UploadCall::ReleaseResources();
  factor_.reset();
}

absl::StatusOr<std::vector<PayloadStep*>> FactorizeCall::Start(const StreamMessage& first) {
  v1::FactorizeHeader header;
  CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
  CROUT_ASSIGN_OR_RETURN(insert_, DecodeCacheOptions(header.cache(), tenant_, core_.limits));
  observed_.request_id = insert_.request_id;
  CROUT_ASSIGN_OR_RETURN(const MatrixSpec matrix, DecodeMatrix(header.matrix(), "header.matrix"));
  CROUT_ASSIGN_OR_RETURN(const FactorRequest request, DecodeOptions(header.options()));
  CROUT_ASSIGN_OR_RETURN(
      factor_, PlaceStep(core_.engine, request.device,
                         [&](DeviceSlot& slot) -> absl::StatusOr<std::unique_ptr<FactorStep>> {
                           CROUT_ASSIGN_OR_RETURN(
                               auto step,
                               FactorStep::Create(core_.engine, matrix, request, slot, true));
                           step->AllowSparse(tenant_);
                           if (step->CanBatch()) step->EnableBatching();
                           return step;
                         }));
  return Claim();
}

absl::Status FactorizeCall::AnswerWith(const FactorInfo& existing) {
  if (existing.summary.batch) {
    return absl::FailedPreconditionError(
        "header.cache.request_id: this id belongs to the factor of a batch: call FactorizeBatch, "
        "or use another id");
  }
  SendFactor(existing);
  return absl::OkStatus();
}

grpc::ByteBuffer FactorizeCall::Encode(const v1::Factor& factor) {
  v1::FactorizeResponse response;
  *response.mutable_factor() = factor;
  return Serialize(response);
}

absl::StatusOr<std::vector<PayloadStep*>> RefactorizeCall::Start(const StreamMessage& first) {
  v1::RefactorizeHeader header;
  CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
  CROUT_ASSIGN_OR_RETURN(handle_, DecodeHandle(header.handle()));
  replace_if_singular_ = header.replace_if_singular();
  CROUT_ASSIGN_OR_RETURN(old_, AcquireNamed(header.handle(), AcquireDense));
  CROUT_ASSIGN_OR_RETURN(const MatrixSpec matrix, DecodeMatrix(header.matrix(), "header.matrix"));
  CROUT_ASSIGN_OR_RETURN(const FactorRequest request, DecodeOptions(header.options()));
  CROUT_RETURN_IF_ERROR(CheckDeviceOf(request.device, *old_, "header.options.device"));
  CROUT_ASSIGN_OR_RETURN(
      factor_, FactorStep::Create(core_.engine, matrix, request, old_->slot(), true, &*old_));
  factor_->AllowSparse(tenant_);
  return std::vector<PayloadStep*>{factor_.get()};
}

absl::StatusOr<FactorInfo> RefactorizeCall::Store(NewFactor factor) {
  if (factor.factorization.summary.info == 0 || replace_if_singular_) {
    return core_.engine.cache.Replace(tenant_, handle_, std::move(factor));
  }
  CROUT_ASSIGN_OR_RETURN(const FactorInfo kept, core_.engine.cache.Describe(tenant_, handle_));
  kept_version_ = kept.version;
  FactorInfo dropped = DescribeDropped(std::move(factor));
  dropped.version = 0;
  return dropped;
}

void RefactorizeCall::SendFactor(const FactorInfo& info) {
  if (kept_version_ == 0) return FactoringCall::SendFactor(info);
  Send([this, factor = EncodeWithCounts(info)] { return Encode(factor); });
  EndAfterReplies(WithReason(
      absl::FailedPreconditionError(absl::StrCat(CheckSolvable(info.summary).message(),
                                                 ": the handle keeps version ", kept_version_,
                                                 ". Set replace_if_singular to replace it anyway")),
      kReasonSingular));
}

void RefactorizeCall::ReleaseResources() {
  FactoringCall::ReleaseResources();
  old_.reset();
}

grpc::ByteBuffer RefactorizeCall::Encode(const v1::Factor& factor) {
  v1::RefactorizeResponse response;
  *response.mutable_factor() = factor;
  response.set_kept_version(kept_version_);
  return Serialize(response);
}

}  // namespace crout
