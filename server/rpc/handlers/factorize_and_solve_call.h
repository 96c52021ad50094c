// SPDX-License-Identifier: Apache-2.0

// FactorizeAndSolve: factors and solves in one job.
#ifndef CROUT_SERVER_RPC_HANDLERS_FACTORIZE_AND_SOLVE_CALL_H_
#define CROUT_SERVER_RPC_HANDLERS_FACTORIZE_AND_SOLVE_CALL_H_

#include <memory>
#include <optional>
#include <vector>

#include "server/engine/plan/direct_solve_steps.h"
#include "server/engine/plan/factor_step.h"
#include "server/engine/plan/solve_step.h"
#include "server/rpc/stream/job_call.h"

namespace crout {

// If the method leaves no factors, `factor` contains only the summary of A.
struct FactorAndSolution {
  NewFactor factor;
  std::optional<Solution> solution;  // unset if A is singular
};

class FactorizeAndSolveCall final : public JobCall<FactorAndSolution> {
 public:
  FactorizeAndSolveCall(ServerCore& core, grpc::CallbackServerContext* context)
      : JobCall(core, context, Method::kFactorizeAndSolve,
                ProgressEvent<v1::FactorizeAndSolveResponse>) {}

 private:
  absl::StatusOr<std::vector<PayloadStep*>> Start(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  double PredictSeconds() override {
    return direct_ != nullptr ? direct_->PredictSeconds()
                              : factor_->PredictSeconds() + solve_->PredictSeconds();
  }
  absl::StatusOr<FactorAndSolution> Run(ExecutionContext& context, CallTimings& timings) override;
  std::optional<BatchKey> GetBatchKey() override;
  absl::Status AddToBatch(ExecutionContext& context, DynamicBatchSystem& system,
                          CallTimings& timings) override;
  absl::StatusOr<FactorAndSolution> ExtractFromBatch(DynamicBatchSystem& system,
                                                     const DynamicBatchTimings& batch,
                                                     CallTimings& timings) override;
  absl::StatusOr<std::optional<FactorAndSolution>> FindSingular() override;
  void Reply(FactorAndSolution answer) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseResources() override;

  absl::StatusOr<std::unique_ptr<FactorStep>> CreateFactorStep(const FactorAndSolveRequest& request,
                                                               DeviceSlot& slot)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the answer of a method that leaves no factors, without its results.
  FactorAndSolution DirectAnswer();
  absl::Status CheckRhs();
  // Caches the factor if the request asks for it, and returns its description.
  v1::Factor Store(NewFactor factor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant from Start() to ReleaseResources(). Either direct_ is set, or factor_ and solve_ are.
  std::unique_ptr<DirectSolveSteps> direct_;
  std::unique_ptr<FactorStep> factor_;
  std::unique_ptr<SolveStep> solve_;
  std::optional<InsertOptions> insert_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_HANDLERS_FACTORIZE_AND_SOLVE_CALL_H_
