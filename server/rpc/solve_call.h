// Solve: a right-hand side against a cached factor.
#ifndef CROUT_SERVER_RPC_SOLVE_CALL_H_
#define CROUT_SERVER_RPC_SOLVE_CALL_H_

#include <memory>
#include <optional>
#include <vector>

#include "server/rpc/job_call.h"
#include "server/rpc/solve_step.h"

namespace crout {

struct SolveAnswer {
  Solution solution;
  bool promoted = false;  // the factor, to its device
};

class SolveCall final : public JobCall<SolveAnswer, v1::PHASE_SOLVE> {
 public:
  SolveCall(ServerCore& core, grpc::CallbackServerContext* context)
      : JobCall(core, context, Method::kSolve, ProgressEvent<v1::SolveResponse>) {}

 private:
  absl::StatusOr<std::vector<PayloadStep*>> Start(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  double PredictSeconds() override { return solve_->PredictSeconds(); }
  absl::StatusOr<SolveAnswer> Run(ExecutionContext& context, CallTimings& timings) override;
  std::optional<Gathering> CanGather() override;
  absl::Status PutIn(ExecutionContext& context, GatheredSystem& system,
                     CallTimings& timings) override;
  absl::StatusOr<SolveAnswer> TakeOut(GatheredSystem& system, const GatheredTimings& batch,
                                      CallTimings& timings) override;
  void Reply(SolveAnswer answer) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseResources() override;

  // Constant from Start() to ReleaseResources().
  std::optional<FactorCache::Pin> pin_;
  std::unique_ptr<SolveStep> solve_;
  bool promoted_ = false;  // by PutIn()
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_SOLVE_CALL_H_
