#include "server/rpc/solve_call.h"

#include <utility>

#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"
#include "server/rpc/status.h"

namespace crout {

absl::StatusOr<std::vector<PayloadStep*>> SolveCall::Start(const StreamMessage& first) {
  v1::SolveHeader header;
  CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
  CROUT_ASSIGN_OR_RETURN(const Handle handle, DecodeHandle(header.handle()));
  observed_.Concerns(header.handle());
  CROUT_ASSIGN_OR_RETURN(FactorCache::Pin pin, core_.cache.Acquire(tenant_, handle));
  pin_.emplace(std::move(pin));
  ReleaseOn(pin_->slot());
  CROUT_RETURN_IF_ERROR(CheckSolvable(pin_->summary()));
  CROUT_ASSIGN_OR_RETURN(
      solve_, SolveStep::Create(
                  core_, header.rhs(), header.options(), "header.options", pin_->slot(),
                  [this] { return pin_->summary(); }, absl::StatusCode::kFailedPrecondition));
  solve_->AddPromotion(pin_->promotion_bytes());
  return std::vector<PayloadStep*>{solve_.get()};
}

absl::StatusOr<Solution> SolveCall::Run(ExecutionContext& context, CallTimings& timings,
                                        bool* promoted) {
  Stopwatch watch;
  CROUT_ASSIGN_OR_RETURN(const Factorization* factor,
                         pin_->OnDevice(context, solve_->TakePromotion(), promoted));
  timings.host_to_device += watch.Lap();
  return solve_->Run(
      context, *factor, [this] { return stop_requested(); }, timings);
}

void SolveCall::RunJob(ExecutionContext& context) {
  CallTimings timings = ArrivalTimings();
  {
    MutexLock lock(&mutex_);
    if (IsLong()) SendProgress(v1::PHASE_SOLVE, 0, PredictSeconds());
  }
  bool promoted = false;
  const absl::StatusOr<Solution> solution = Run(context, timings, &promoted);

  MutexLock lock(&mutex_);
  StartReply(timings, context.device(), pin_->summary().n);
  if (!wanted()) return;
  if (!solution.ok()) return End(solution.status());
  observed_.algorithm = solution->summary.solver;
  v1::SolveResult result = crout::Encode(*solution, pin_->version(), observed_.device);
  result.set_promoted(promoted);
  SendSolution<v1::SolveResponse>(*solution, std::move(result), {});
}

grpc::ByteBuffer SolveCall::Encode(const v1::Progress& progress) {
  v1::SolveResponse response;
  *response.mutable_progress() = progress;
  return Serialize(response);
}

void SolveCall::ReleaseResources() {
  SolvingCall::ReleaseResources();
  solve_.reset();
  pin_.reset();
}

}  // namespace crout
