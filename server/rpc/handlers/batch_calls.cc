// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/handlers/batch_calls.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/jobs/batch/batch_download.h"
#include "kernels/util/status_macros.h"
#include "server/engine/admission/job_memory.h"
#include "server/engine/cache/acquire.h"
#include "server/rpc/codec/decode_batch.h"
#include "server/rpc/codec/decode_cache.h"
#include "server/rpc/codec/decode_field.h"
#include "server/rpc/codec/encode.h"
#include "server/rpc/codec/status.h"

namespace crout {

absl::StatusOr<std::vector<PayloadStep*>> FactorizeBatchCall::Start(const StreamMessage& first) {
  v1::FactorizeBatchHeader header;
  CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
  if (!header.handle().empty()) {
    CROUT_RETURN_IF_ERROR(Replaces(header));
  } else {
    CROUT_ASSIGN_OR_RETURN(insert_, DecodeCacheOptions(header.cache(), tenant_, core_.limits));
    observed_.request_id = insert_.request_id;
    CROUT_ASSIGN_OR_RETURN(const BatchExtent extent,
                           DecodeBatch(header.batch(), "header.batch", core_.limits));
    CROUT_ASSIGN_OR_RETURN(batch_, PlaceStep(core_.engine, header.device(), [&](DeviceSlot& slot) {
                             return BatchFactorStep::Create(core_.engine, extent,
                                                            KeepsMatrix(header), slot);
                           }));
  }
  return Claim();
}

absl::Status FactorizeBatchCall::Replaces(const v1::FactorizeBatchHeader& header) {
  if (header.has_cache()) {
    return BadField("header.cache",
                    "a handle is also set, whose lease and name do not change: leave it unset");
  }
  CROUT_ASSIGN_OR_RETURN(replaced_, DecodeHandle(header.handle()));
  CROUT_ASSIGN_OR_RETURN(old_, AcquireNamed(header.handle(), AcquireBatch));
  CROUT_RETURN_IF_ERROR(CheckDeviceOf(header.device(), *old_, "header.device"));
  CROUT_ASSIGN_OR_RETURN(const BatchExtent extent,
                         DecodeBatch(header.batch(), "header.batch", core_.limits));
  CROUT_ASSIGN_OR_RETURN(
      batch_, BatchFactorStep::Create(core_.engine, extent, KeepsMatrix(header), old_->slot()));
  const BatchExtent& was = old_->summary().batch->extent;
  const BatchExtent& is = batch_->extent();
  if (was.dtype == is.dtype && was.members == is.members && was.max_rows == is.max_rows &&
      was.max_cols == is.max_cols && was.total_rows == is.total_rows &&
      was.total_cols == is.total_cols && was.bytes == is.bytes) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("header.batch: the handle's batch has ", was.members, " members and ", was.bytes,
                   " bytes, this one ", is.members, " and ", is.bytes,
                   ", or their types or largest sizes differ: factor it as a new batch"));
}

absl::Status FactorizeBatchCall::AnswerWith(const FactorInfo& existing) {
  if (!existing.summary.batch) {
    return absl::FailedPreconditionError(
        "header.cache.request_id: this id belongs to the factor of a single matrix: call "
        "Factorize, or use another id");
  }
  CROUT_ASSIGN_OR_RETURN(old_, AcquireBatch(core_.engine.cache, tenant_, existing.handle));
  ReleaseOn(old_->slot());
  existing_ = existing;
  // The factor may have been replaced in the meantime. Describe the pinned version.
  existing_.summary = old_->summary();
  existing_.version = old_->version();
  const int64_t members = existing_.summary.batch->extent.members;
  SubmitTask(*old_->slot().admitting, AdmissionSize(BatchFiguresBytes(members)),
             [this] { FetchFigures(); });
  return absl::OkStatus();
}

absl::StatusOr<bool> FactorizeBatchCall::CopyFiguresFromHost() {
  const int64_t members = existing_.summary.batch->extent.members;
  CROUT_ASSIGN_OR_RETURN(JobMemory memory,
                         Reserve(core_.engine, old_->slot(), {.host = BatchFiguresBytes(members)}));
  existing_figures_.reservation = std::move(memory.host);
  return old_->ReadOnHost([&](const FactorParts& parts) -> absl::Status {
    CROUT_ASSIGN_OR_RETURN(existing_figures_.bytes,
                           DownloadFigures(nullptr, parts, members, core_.engine.host_memory));
    return absl::OkStatus();
  });
}

void FactorizeBatchCall::FetchFigures() {
  const absl::StatusOr<bool> copied = CopyFiguresFromHost();
  MutexLock lock(&mutex_);
  if (!needs_result()) return;
  if (!copied.ok()) return End(copied.status());
  if (*copied) return SendExisting(*old_->slot().device);
  Submit(*old_->slot().scheduler, 0, [this](ExecutionContext& context) {
    const absl::Status status = CopyFiguresFromDevice(context);
    MutexLock lock(&mutex_);
    if (!needs_result()) return;
    if (!status.ok()) return End(status);
    SendExisting(context.device());
  });
}

absl::Status FactorizeBatchCall::CopyFiguresFromDevice(ExecutionContext& context) {
  bool promoted = false;  // Not needed: the factor is on its device, and the pin keeps it there.
  CROUT_ASSIGN_OR_RETURN(const Factorization* factor, old_->OnDevice(context, {}, &promoted));
  CROUT_ASSIGN_OR_RETURN(
      existing_figures_.bytes,
      DownloadFigures(&context, factor->parts, existing_.summary.batch->extent.members,
                      core_.engine.host_memory));
  return absl::OkStatus();
}

void FactorizeBatchCall::SendExisting(const Device& device) {
  Call::StartReply({}, device, existing_.summary.n);
  SendFactor(existing_, std::make_shared<const ReplyData>(std::move(existing_figures_)));
}

absl::StatusOr<BatchAnswer> FactorizeBatchCall::Run(ExecutionContext& context,
                                                    CallTimings& timings) {
  return batch_->Run(
      context, [this] { return stop_requested(); }, timings);
}

void FactorizeBatchCall::Reply(BatchAnswer answer) {
  answer.factor.timings = ReplyTimings();
  ObserveQuality(core_, observed_, answer.factor.factorization.summary);
  absl::StatusOr<FactorInfo> info =
      replaced_ ? core_.engine.cache.Replace(tenant_, *replaced_, std::move(answer.factor))
                : InsertFactor(std::move(answer.factor));
  if (!info.ok()) return End(info.status());
  SendFactor(*info, std::move(answer.figures));
}

void FactorizeBatchCall::SendFactor(const FactorInfo& info,
                                    std::shared_ptr<const ReplyData> figures) {
  observed_.SetHandle(info.handle.ToString());
  observed_.algorithm = info.summary.algorithm;
  observed_.factor_bytes = info.bytes;
  EndWithData(v1::FactorizeBatchResponse(), std::move(figures),
              [factor = Encode(info)](v1::FactorizeBatchResponse& response) {
                *response.mutable_factor() = factor;
              });
}

void FactorizeBatchCall::ReleaseResources() {
  IdempotentCall::ReleaseResources();
  batch_.reset();
  old_.reset();
  existing_figures_ = {};
}

absl::StatusOr<std::vector<PayloadStep*>> SolveBatchCall::Start(const StreamMessage& first) {
  v1::SolveBatchHeader header;
  CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
  CROUT_ASSIGN_OR_RETURN(pin_, AcquireNamed(header.handle(), AcquireBatch));
  const FactorSummary& factor = pin_->summary();
  CROUT_ASSIGN_OR_RETURN(const BatchSystems systems, DecodeSystems(header, factor));
  CROUT_ASSIGN_OR_RETURN(
      solve_, BatchSolveStep::Create(core_.engine, systems, "header", "header.value_bytes", factor,
                                     pin_->has_matrix(), pin_->slot()));
  solve_->AddPromotion(pin_->promotion_bytes());
  return std::vector<PayloadStep*>{solve_.get()};
}

void SolveBatchCall::Reply(BatchSolution solution) {
  observed_.algorithm = pin_->summary().algorithm;
  v1::SolveBatchResult result = Encode(solution, pin_->version(), observed_.device);
  result.set_promoted(promoted_);
  EndWithDataAndResult(v1::SolveBatchResponse(), std::move(solution.x), result);
}

absl::StatusOr<std::vector<PayloadStep*>> FactorizeAndSolveBatchCall::Start(
    const StreamMessage& first) {
  v1::FactorizeAndSolveBatchHeader header;
  CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
  if (header.has_cache()) {
    if (!header.cache().request_id().empty()) {
      return BadField("header.cache.request_id",
                      "not supported here: FactorizeBatch, then SolveBatch, makes the pair "
                      "idempotent");
    }
    CROUT_ASSIGN_OR_RETURN(insert_, DecodeCacheOptions(header.cache(), tenant_, core_.limits));
  }
  const bool keep_matrix = insert_.has_value() || Verifies(header);
  CROUT_ASSIGN_OR_RETURN(const BatchExtent extent,
                         DecodeBatch(header.batch(), "header.batch", core_.limits));
  CROUT_ASSIGN_OR_RETURN(batch_, PlaceStep(core_.engine, header.device(), [&](DeviceSlot& slot) {
                           return BatchFactorStep::Create(core_.engine, extent, keep_matrix, slot);
                         }));
  const FactorSummary factor = batch_->Expected();
  CROUT_ASSIGN_OR_RETURN(const BatchSystems systems, DecodeSystems(header, factor));
  CROUT_ASSIGN_OR_RETURN(solve_, BatchSolveStep::Create(core_.engine, systems, "header.systems",
                                                        "header.rhs_value_bytes", factor,
                                                        batch_->keeps_matrix(), batch_->slot()));
  return std::vector<PayloadStep*>{batch_.get(), solve_.get()};
}

absl::StatusOr<SolvedBatchAnswer> FactorizeAndSolveBatchCall::Run(ExecutionContext& context,
                                                                  CallTimings& timings) {
  const auto stop = [this] { return stop_requested(); };
  SolvedBatchAnswer answer;
  CROUT_ASSIGN_OR_RETURN(answer.batch, batch_->Run(context, stop, timings));
  CROUT_ASSIGN_OR_RETURN(answer.solution,
                         solve_->Run(context, answer.batch.factor.factorization, stop, timings));
  return answer;
}

void FactorizeAndSolveBatchCall::Reply(SolvedBatchAnswer answer) {
  NewFactor& made = answer.batch.factor;
  made.timings = ReplyTimings();
  ObserveQuality(core_, observed_, made.factorization.summary);
  const FactorInfo info = insert_ ? core_.engine.cache.Insert(std::move(made), *insert_)
                                  : DescribeDropped(std::move(made));
  const v1::Factor factor = Encode(info);
  observed_.SetHandle(factor.handle());
  observed_.algorithm = info.summary.algorithm;
  if (insert_) observed_.factor_bytes = info.bytes;
  using Response = v1::FactorizeAndSolveBatchResponse;
  SendData(Response(), std::move(answer.batch.figures),
           [factor](Response& response) { *response.mutable_factor() = factor; });
  EndWithDataAndResult(Response(), std::move(answer.solution.x),
                       Encode(answer.solution, info.version, observed_.device),
                       Response::kSolutionDataFieldNumber);
}

void FactorizeAndSolveBatchCall::ReleaseResources() {
  UploadCall::ReleaseResources();
  solve_.reset();
  batch_.reset();
}

}  // namespace crout
