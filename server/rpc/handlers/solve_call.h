// SPDX-License-Identifier: Apache-2.0

// Solve: solves systems with a cached factor of a matrix or of a batch.
#ifndef CROUT_SERVER_RPC_HANDLERS_SOLVE_CALL_H_
#define CROUT_SERVER_RPC_HANDLERS_SOLVE_CALL_H_

#include <memory>

#include "server/engine/plan/cached_solve.h"
#include "server/rpc/stream/job_call.h"

namespace crout {

class SolveCall final : public JobCall<CachedSolution, v1::PHASE_SOLVE> {
 public:
  SolveCall(ServerCore& core, grpc::CallbackServerContext* context)
      : JobCall(core, context, Method::kSolve, ProgressEvent<v1::SolveResponse>) {}

 private:
  absl::StatusOr<std::unique_ptr<Plan>> MakePlan(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Reply(CachedSolution solution) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_HANDLERS_SOLVE_CALL_H_
