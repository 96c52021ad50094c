// SPDX-License-Identifier: Apache-2.0

// Solve: solves systems with a cached factor of a matrix or of a batch.
// FactorizeAndSolve: factors and solves in one job.
#ifndef CROUT_SERVER_RPC_HANDLERS_SOLVE_CALL_H_
#define CROUT_SERVER_RPC_HANDLERS_SOLVE_CALL_H_

#include <memory>
#include <optional>

#include "server/engine/plan/factor_plan.h"
#include "server/engine/plan/solve_step.h"
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

class FactorizeAndSolveCall final : public JobCall<FactorAndSolution> {
 public:
  FactorizeAndSolveCall(ServerCore& core, grpc::CallbackServerContext* context)
      : JobCall(core, context, Method::kFactorizeAndSolve,
                ProgressEvent<v1::FactorizeAndSolveResponse>) {}

 private:
  absl::StatusOr<std::unique_ptr<Plan>> MakePlan(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Reply(FactorAndSolution answer) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Caches the factor if the request asks for it, and returns its description.
  v1::Factor Store(NewFactor factor, bool has_factor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::optional<InsertOptions> insert_;  // constant after MakePlan(); unset: drop the factor
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_HANDLERS_SOLVE_CALL_H_
