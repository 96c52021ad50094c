// Solve: a right-hand side against a cached factor.
#ifndef CROUT_SERVER_RPC_SOLVE_CALL_H_
#define CROUT_SERVER_RPC_SOLVE_CALL_H_

#include <memory>
#include <optional>
#include <vector>

#include "server/rpc/solving_call.h"

namespace crout {

class SolveCall final : public SolvingCall {
 public:
  SolveCall(ServerCore& core, grpc::CallbackServerContext* context)
      : SolvingCall(core, context, Method::kSolve) {}

 private:
  absl::StatusOr<std::vector<PayloadStep*>> Start(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  double PredictSeconds() override { return solve_->PredictSeconds(); }
  grpc::ByteBuffer Encode(const v1::Progress& progress) override;
  void RunJob(ExecutionContext& context) override;
  void ReleaseResources() override;

  absl::StatusOr<Solution> Run(ExecutionContext& context, CallTimings& timings, bool* promoted);

  // Constant from Start() to ReleaseResources().
  std::optional<FactorCache::Pin> pin_;
  std::unique_ptr<SolveStep> solve_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_SOLVE_CALL_H_
