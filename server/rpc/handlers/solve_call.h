// SPDX-License-Identifier: Apache-2.0

// Solve: solves systems with a cached factor.
#ifndef CROUT_SERVER_RPC_HANDLERS_SOLVE_CALL_H_
#define CROUT_SERVER_RPC_HANDLERS_SOLVE_CALL_H_

#include <optional>
#include <vector>

#include "server/engine/plan/solve_step.h"
#include "server/rpc/handlers/solving_call.h"

namespace crout {

class SolveCall final : public SolvingCall<SolveStep, Solution> {
 public:
  SolveCall(ServerCore& core, grpc::CallbackServerContext* context)
      : SolvingCall(core, context, Method::kSolve, ProgressEvent<v1::SolveResponse>) {}

 private:
  absl::StatusOr<std::vector<PayloadStep*>> Start(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<BatchKey> GetBatchKey() override;
  absl::Status AddToBatch(ExecutionContext& context, DynamicBatchSystem& system,
                          CallTimings& timings) override;
  absl::StatusOr<Solution> ExtractFromBatch(DynamicBatchSystem& system,
                                            const DynamicBatchTimings& batch,
                                            CallTimings& timings) override;
  void Reply(Solution solution) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_HANDLERS_SOLVE_CALL_H_
