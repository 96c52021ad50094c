#include "server/rpc/factorize_and_solve_call.h"

#include <utility>

#include "kernels/util/status_macros.h"
#include "server/rpc/codec.h"
#include "server/rpc/placement.h"
#include "server/rpc/status.h"

namespace crout {

absl::StatusOr<std::vector<PayloadStep*>> FactorizeAndSolveCall::Start(const StreamMessage& first) {
  v1::FactorizeAndSolveHeader header;
  CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
  if (DirectSolveSteps::IsAskedFor(core_, header.options())) return StartDirect(header);
  if (header.has_cache()) {
    if (!header.cache().request_id().empty()) {
      return BadField("header.cache.request_id",
                      "not supported here: Factorize, then Solve, makes the pair idempotent");
    }
    CROUT_ASSIGN_OR_RETURN(insert_, DecodeCacheOptions(header.cache(), tenant_, core_.limits));
  }
  CROUT_ASSIGN_OR_RETURN(factor_,
                         PlaceStep(core_, header.options().device(), [&](DeviceSlot& slot) {
                           return FactorStep::Create(core_, header.matrix(), header.options(), slot,
                                                     insert_.has_value());
                         }));
  CROUT_ASSIGN_OR_RETURN(
      solve_, SolveStep::Create(
                  core_, header.rhs(), header.solve(), "header.solve", factor_->slot(),
                  [this] { return factor_->Expected(); }, absl::StatusCode::kInvalidArgument));
  if (factor_->upload().text() && !solve_->upload().text()) {
    // B is admitted before A's text was read to its end; Run() holds A to it.
    CROUT_RETURN_IF_ERROR(factor_->ExpectOrder(solve_->upload().shape().rows));
  }
  return std::vector<PayloadStep*>{factor_.get(), solve_.get()};
}

absl::StatusOr<std::vector<PayloadStep*>> FactorizeAndSolveCall::StartDirect(
    const v1::FactorizeAndSolveHeader& header) {
  CROUT_ASSIGN_OR_RETURN(direct_,
                         PlaceStep(core_, header.options().device(), [&](DeviceSlot& slot) {
                           return DirectSolveSteps::Create(core_, header, slot);
                         }));
  return direct_->steps();
}

absl::Status FactorizeAndSolveCall::Run(ExecutionContext& context, CallTimings& timings,
                                        std::optional<NewFactor>* factor,
                                        std::optional<Solution>* solution) {
  const int64_t n = factor_->upload().shape().rows;
  CROUT_RETURN_IF_ERROR(
      CheckRows(solve_->upload().shape(), n, "header.rhs", absl::StatusCode::kInvalidArgument));
  CROUT_ASSIGN_OR_RETURN(*factor, factor_->Run(
                                      context, [&] { return StopFactoring(context, n); }, timings));
  const Factorization& factorization = (*factor)->factorization;
  if (factorization.summary.info > 0) return absl::OkStatus();
  CROUT_ASSIGN_OR_RETURN(*solution,
                         solve_->Run(
                             context, factorization, [this] { return stop_requested(); }, timings));
  return absl::OkStatus();
}

v1::Factor FactorizeAndSolveCall::Store(NewFactor factor) {
  factor.timings = ReplyTimings();
  ObserveQuality(core_, observed_, factor.factorization.summary);
  if (insert_) return EncodeWithCounts(core_.cache.Insert(std::move(factor), *insert_));
  return EncodeWithCounts(DescribeDropped(std::move(factor)));
}

void FactorizeAndSolveCall::RunJob(ExecutionContext& context) {
  CallTimings timings = ArrivalTimings();
  {
    MutexLock lock(&mutex_);
    if (IsLong()) SendProgress(v1::PHASE_FACTOR, 0, PredictSeconds());
  }
  if (direct_ != nullptr) return RunDirect(context, timings);
  std::optional<NewFactor> factor;
  std::optional<Solution> solution;
  const absl::Status status = Run(context, timings, &factor, &solution);

  MutexLock lock(&mutex_);
  StartReply(timings, context.device(), factor_->upload().shape().rows);
  if (ended()) return;
  if (!status.ok()) return End(status);
  const FactorSummary summary = factor->factorization.summary;
  Reply(Store(*std::move(factor)), summary, solution);
}

void FactorizeAndSolveCall::RunDirect(ExecutionContext& context, CallTimings timings) {
  FactorInfo info;
  std::optional<Solution> solution;
  const absl::Status status = direct_->Run(
      context, [this] { return stop_requested(); }, timings, &info.summary, &solution);

  MutexLock lock(&mutex_);
  StartReply(timings, context.device(), direct_->n());
  if (ended()) return;
  if (!status.ok()) return End(status);
  ReplyDirect(std::move(info), solution);
}

absl::StatusOr<bool> FactorizeAndSolveCall::AnswerSingular() {
  if (direct_ != nullptr) return AnswerSingularDirect();
  const int64_t n = factor_->upload().shape().rows;
  CROUT_RETURN_IF_ERROR(
      CheckRows(solve_->upload().shape(), n, "header.rhs", absl::StatusCode::kInvalidArgument));
  CROUT_ASSIGN_OR_RETURN(std::optional<NewFactor> factor, factor_->FindSingular());
  if (!factor) return false;
  const CallTimings timings = ArrivalTimings();
  MutexLock lock(&mutex_);
  StartReply(timings, *factor_->slot().device, n);
  if (ended()) return true;
  const FactorSummary summary = factor->factorization.summary;
  Reply(Store(*std::move(factor)), summary, std::nullopt);
  return true;
}

absl::StatusOr<bool> FactorizeAndSolveCall::AnswerSingularDirect() {
  FactorInfo info;
  CROUT_ASSIGN_OR_RETURN(const bool singular, direct_->FindSingular(&info.summary));
  if (!singular) return false;
  const CallTimings timings = ArrivalTimings();
  MutexLock lock(&mutex_);
  StartReply(timings, *direct_->steps().front()->slot().device, direct_->n());
  if (!ended()) ReplyDirect(std::move(info), std::nullopt);
  return true;
}

void FactorizeAndSolveCall::ReplyDirect(FactorInfo info, const std::optional<Solution>& solution) {
  info.device = observed_.device;
  info.nnz = direct_->nnz();
  info.timings = ReplyTimings();
  v1::Factor factor = crout::Encode(info);
  factor.clear_version();  // There are no factors that these could be said of.
  factor.clear_unit_diagonal();
  Reply(factor, info.summary, solution);
}

void FactorizeAndSolveCall::Reply(const v1::Factor& factor, const FactorSummary& summary,
                                  const std::optional<Solution>& solution) {
  observed_.Concerns(factor.handle());
  observed_.algorithm = summary.algorithm;
  v1::FactorizeAndSolveResponse first;
  *first.mutable_factor() = factor;
  if (!solution) {
    Send([first] { return Serialize(first); });
    return EndAfterReplies(CheckSolvable(summary));
  }
  v1::SolveResult result = crout::Encode(*solution, factor.version(), observed_.device);
  SendSolution(*solution, std::move(result), std::move(first));
}

grpc::ByteBuffer FactorizeAndSolveCall::Encode(const v1::Progress& progress) {
  v1::FactorizeAndSolveResponse response;
  *response.mutable_progress() = progress;
  return Serialize(response);
}

void FactorizeAndSolveCall::ReleaseResources() {
  SolvingCall::ReleaseResources();
  direct_.reset();
  solve_.reset();
  factor_.reset();
}

}  // namespace crout
