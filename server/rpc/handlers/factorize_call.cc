// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/handlers/factorize_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/jobs/batch/batch_download.h"
#include "kernels/util/status_macros.h"
#include "server/engine/admission/job_memory.h"
#include "server/engine/error.h"
#include "server/engine/plan/solve_step.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/decode_options.h"
#include "server/rpc/codec/encode.h"
#include "server/rpc/codec/status.h"
#include "server/rpc/codec/wire.h"

namespace crout {

absl::StatusOr<std::unique_ptr<FactorPlan>> FactorizeCall::MakePlan(const StreamMessage& first) {
  v1::FactorizeHeader header;
  CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
  CROUT_ASSIGN_OR_RETURN(insert_, DecodeCacheOptions(header.cache(), tenant_, core_.limits));
  observed_.request_id = insert_.request_id;
  CROUT_ASSIGN_OR_RETURN(const MatrixSpec matrix, DecodeMatrix(header.matrix(), "header.matrix"));
  CROUT_ASSIGN_OR_RETURN(const FactorRequest request, DecodeOptions(header.options()));
  is_batch_ = matrix.batch.has_value();
  return PlanFactor(core_.engine, matrix, request, tenant_);
}

absl::Status FactorizeCall::AnswerWith(const FactorInfo& existing) {
  if (existing.summary.batch.has_value() != is_batch_) {
    return absl::FailedPreconditionError(
        absl::StrCat("header.cache.request_id: this id belongs to the factor of ",
                     is_batch_ ? "a single matrix, not of a batch" : "a batch, not of a matrix",
                     ": use another id"));
  }
  if (!is_batch_) {
    SendFactor(existing, nullptr);
    return absl::OkStatus();
  }
  CROUT_ASSIGN_OR_RETURN(existing_pin_, core_.engine.cache.Acquire(tenant_, existing.handle));
  ReleaseOn(existing_pin_->slot());
  existing_ = existing;
  // The factor may have been replaced in the meantime. Describe the pinned version.
  existing_.summary = existing_pin_->summary();
  existing_.version = existing_pin_->version();
  const int64_t members = existing_.summary.batch->extent.members;
  SubmitTask(*existing_pin_->slot().admitting, AdmissionSize(BatchFiguresBytes(members)),
             [this] { FetchFigures(); });
  return absl::OkStatus();
}

absl::StatusOr<bool> FactorizeCall::CopyFiguresFromHost() {
  const int64_t members = existing_.summary.batch->extent.members;
  CROUT_ASSIGN_OR_RETURN(JobMemory memory, Reserve(core_.engine, existing_pin_->slot(),
                                                   {.host = BatchFiguresBytes(members)}));
  existing_figures_.reservation = std::move(memory.host);
  return existing_pin_->ReadOnHost([&](const FactorParts& parts) -> absl::Status {
    CROUT_ASSIGN_OR_RETURN(existing_figures_.bytes,
                           DownloadFigures(nullptr, parts, members, core_.engine.host_memory));
    return absl::OkStatus();
  });
}

void FactorizeCall::FetchFigures() {
  const absl::StatusOr<bool> copied = CopyFiguresFromHost();
  MutexLock lock(&mutex_);
  if (!needs_result()) return;
  if (!copied.ok()) return End(copied.status());
  if (*copied) return SendExisting(*existing_pin_->slot().device);
  Submit(*existing_pin_->slot().scheduler, 0, [this](ExecutionContext& context) {
    const absl::Status status = CopyFiguresFromDevice(context);
    MutexLock lock(&mutex_);
    if (!needs_result()) return;
    if (!status.ok()) return End(status);
    SendExisting(context.device());
  });
}

absl::Status FactorizeCall::CopyFiguresFromDevice(ExecutionContext& context) {
  bool promoted = false;  // Not needed: the factor is on its device, and the pin keeps it there.
  CROUT_ASSIGN_OR_RETURN(const Factorization* factor,
                         existing_pin_->OnDevice(context, {}, &promoted));
  CROUT_ASSIGN_OR_RETURN(
      existing_figures_.bytes,
      DownloadFigures(&context, factor->parts, existing_.summary.batch->extent.members,
                      core_.engine.host_memory));
  return absl::OkStatus();
}

void FactorizeCall::SendExisting(const Device& device) {
  Call::StartReply({}, device, existing_.summary.n);
  SendFactor(existing_, std::make_shared<const ReplyData>(std::move(existing_figures_)));
}

void FactorizeCall::ReleaseResources() {
  IdempotentCall::ReleaseResources();
  existing_pin_.reset();
  existing_figures_ = {};
}

absl::StatusOr<std::unique_ptr<FactorPlan>> RefactorizeCall::MakePlan(const StreamMessage& first) {
  v1::RefactorizeHeader header;
  CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
  CROUT_ASSIGN_OR_RETURN(handle_, DecodeHandle(header.handle()));
  replace_if_singular_ = header.replace_if_singular();
  CROUT_ASSIGN_OR_RETURN(old_, AcquireNamed(header.handle()));
  CROUT_ASSIGN_OR_RETURN(const MatrixSpec matrix, DecodeMatrix(header.matrix(), "header.matrix"));
  CROUT_ASSIGN_OR_RETURN(const FactorRequest request, DecodeOptions(header.options()));
  return PlanRefactor(core_.engine, matrix, request, tenant_, *old_);
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

void RefactorizeCall::SendFactor(const FactorInfo& info, std::shared_ptr<const ReplyData> figures) {
  if (kept_version_ == 0) return FactoringCall::SendFactor(info, std::move(figures));
  v1::RefactorizeResponse response;
  *response.mutable_factor() = EncodeWithCounts(info);
  response.set_kept_version(kept_version_);
  Send([response = std::move(response)] { return Serialize(response); });
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

}  // namespace crout
