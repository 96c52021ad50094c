#include "server/rpc/batch_calls.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"
#include "server/rpc/acquire.h"
#include "server/rpc/decode.h"
#include "server/rpc/encode.h"
#include "server/rpc/factor_step.h"
#include "server/rpc/placement.h"
#include "server/rpc/status.h"

namespace crout {

absl::StatusOr<std::vector<PayloadStep*>> FactorizeBatchCall::Start(const StreamMessage& first) {
  v1::FactorizeBatchHeader header;
  CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
  if (!header.handle().empty()) {
    CROUT_RETURN_IF_ERROR(Replaces(header));
  } else {
    CROUT_ASSIGN_OR_RETURN(insert_, DecodeCacheOptions(header.cache(), tenant_, core_.limits));
    if (!insert_.request_id.empty()) {
      return BadField("header.cache.request_id", "batches take none: leave it out");
    }
    CROUT_ASSIGN_OR_RETURN(batch_, PlaceStep(core_, header.device(), [&](DeviceSlot& slot) {
                             return BatchFactorStep::Create(core_, header.batch(),
                                                            !header.drop_matrix(), slot);
                           }));
  }
  return std::vector<PayloadStep*>{batch_.get()};
}

absl::Status FactorizeBatchCall::Replaces(const v1::FactorizeBatchHeader& header) {
  if (header.has_cache()) {
    return BadField("header.cache",
                    "beside a handle, whose factor is kept as it was: leave it out");
  }
  CROUT_ASSIGN_OR_RETURN(replaced_, DecodeHandle(header.handle()));
  observed_.Concerns(header.handle());
  CROUT_ASSIGN_OR_RETURN(old_, AcquireBatch(core_, tenant_, *replaced_));
  ReleaseOn(old_->slot());
  CROUT_RETURN_IF_ERROR(CheckDeviceOf(header.device(), *old_, "header.device"));
  CROUT_ASSIGN_OR_RETURN(
      batch_, BatchFactorStep::Create(core_, header.batch(), !header.drop_matrix(), old_->slot()));
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

absl::StatusOr<BatchAnswer> FactorizeBatchCall::Run(ExecutionContext& context,
                                                    CallTimings& timings) {
  return batch_->Run(
      context, [this] { return stop_requested(); }, timings);
}

void FactorizeBatchCall::Reply(BatchAnswer answer) {
  answer.factor.timings = ReplyTimings();
  ObserveQuality(core_, observed_, answer.factor.factorization.summary);
  absl::StatusOr<FactorInfo> info =
      replaced_ ? core_.cache.Replace(tenant_, *replaced_, std::move(answer.factor))
                : core_.cache.Insert(std::move(answer.factor), insert_);
  if (!info.ok()) return End(info.status());
  observed_.Concerns(info->handle.ToString());
  observed_.algorithm = info->summary.algorithm;
  observed_.factor_bytes = info->bytes;
  SendData(v1::FactorizeBatchResponse(), std::move(answer.figures),
           [factor = Encode(*info)](v1::FactorizeBatchResponse& response) {
             *response.mutable_factor() = factor;
           });
  End(absl::OkStatus());
}

void FactorizeBatchCall::ReleaseResources() {
  UploadCall::ReleaseResources();
  batch_.reset();
  old_.reset();
}

absl::StatusOr<std::vector<PayloadStep*>> SolveBatchCall::Start(const StreamMessage& first) {
  v1::SolveBatchHeader header;
  CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
  CROUT_ASSIGN_OR_RETURN(const Handle handle, DecodeHandle(header.handle()));
  observed_.Concerns(header.handle());
  CROUT_ASSIGN_OR_RETURN(pin_, AcquireBatch(core_, tenant_, handle));
  ReleaseOn(pin_->slot());
  const FactorSummary& factor = pin_->summary();
  CROUT_ASSIGN_OR_RETURN(const BatchSystems systems, DecodeSystems(header, factor));
  CROUT_ASSIGN_OR_RETURN(solve_, BatchSolveStep::Create(core_, systems, "header", factor,
                                                        pin_->has_matrix(), pin_->slot()));
  solve_->AddPromotion(pin_->promotion_bytes());
  return std::vector<PayloadStep*>{solve_.get()};
}

absl::StatusOr<SolveBatchAnswer> SolveBatchCall::Run(ExecutionContext& context,
                                                     CallTimings& timings) {
  Stopwatch watch;
  SolveBatchAnswer answer;
  CROUT_ASSIGN_OR_RETURN(const Factorization* factor,
                         pin_->OnDevice(context, solve_->TakePromotion(), &answer.promoted));
  timings.host_to_device += watch.Lap();
  CROUT_ASSIGN_OR_RETURN(answer.solution,
                         solve_->Run(
                             context, *factor, [this] { return stop_requested(); }, timings));
  return answer;
}

void SolveBatchCall::Reply(SolveBatchAnswer answer) {
  observed_.algorithm = pin_->summary().algorithm;
  v1::SolveBatchResult result = solve_->Encode(answer.solution, pin_->version(), observed_.device);
  result.set_promoted(answer.promoted);
  SendDataAndResult(v1::SolveBatchResponse(), std::move(answer.solution.x), result);
}

void SolveBatchCall::ReleaseResources() {
  UploadCall::ReleaseResources();
  solve_.reset();
  pin_.reset();
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
  const bool keep_matrix = insert_.has_value() || !header.skip_verification();
  CROUT_ASSIGN_OR_RETURN(batch_, PlaceStep(core_, header.device(), [&](DeviceSlot& slot) {
                           return BatchFactorStep::Create(core_, header.batch(), keep_matrix, slot);
                         }));
  const FactorSummary factor = batch_->Expected();
  CROUT_ASSIGN_OR_RETURN(const BatchSystems systems, DecodeSystems(header, factor));
  CROUT_ASSIGN_OR_RETURN(solve_, BatchSolveStep::Create(core_, systems, "header.systems", factor,
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
  const FactorInfo info =
      insert_ ? core_.cache.Insert(std::move(made), *insert_) : DescribeDropped(std::move(made));
  const v1::Factor factor = Encode(info);
  observed_.Concerns(factor.handle());
  observed_.algorithm = info.summary.algorithm;
  if (insert_) observed_.factor_bytes = info.bytes;
  using Response = v1::FactorizeAndSolveBatchResponse;
  SendData(Response(), std::move(answer.batch.figures),
           [factor](Response& response) { *response.mutable_factor() = factor; });
  SendDataAndResult(Response(), std::move(answer.solution.x),
                    solve_->Encode(answer.solution, info.version, observed_.device),
                    Response::kSolutionDataFieldNumber);
}

void FactorizeAndSolveBatchCall::ReleaseResources() {
  UploadCall::ReleaseResources();
  solve_.reset();
  batch_.reset();
}

}  // namespace crout
