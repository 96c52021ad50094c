// FactorizeAndSolve: both in one job.
#ifndef CROUT_SERVER_RPC_FACTORIZE_AND_SOLVE_CALL_H_
#define CROUT_SERVER_RPC_FACTORIZE_AND_SOLVE_CALL_H_

#include <memory>
#include <optional>
#include <vector>

#include "server/rpc/direct_solve_steps.h"
#include "server/rpc/factor_step.h"
#include "server/rpc/solving_call.h"

namespace crout {

class FactorizeAndSolveCall final : public SolvingCall {
 public:
  FactorizeAndSolveCall(ServerCore& core, grpc::CallbackServerContext* context)
      : SolvingCall(core, context, Method::kFactorizeAndSolve) {}

 private:
  absl::StatusOr<std::vector<PayloadStep*>> Start(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  double PredictSeconds() override {
    return direct_ != nullptr ? direct_->PredictSeconds()
                              : factor_->PredictSeconds() + solve_->PredictSeconds();
  }
  grpc::ByteBuffer Encode(const v1::Progress& progress) override;
  void RunJob(ExecutionContext& context) override;
  absl::StatusOr<bool> AnswerSingular() override;
  void ReleaseResources() override;

  absl::StatusOr<std::vector<PayloadStep*>> StartDirect(const v1::FactorizeAndSolveHeader& header)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The whole of RunJob() for a method that leaves no factors.
  void RunDirect(ExecutionContext& context, CallTimings timings);
  // What RunDirect() ends with.
  void ReplyDirect(FactorInfo info, const std::optional<Solution>& solution)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<bool> AnswerSingularDirect();
  // Factors, and solves unless the matrix is singular.
  absl::Status Run(ExecutionContext& context, CallTimings& timings,
                   std::optional<NewFactor>* factor, std::optional<Solution>* solution);
  // Caches the factor if the call asks for it and says what it is.
  v1::Factor Store(NewFactor factor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Answers with what is known of A and, unless it is singular, X; and ends the call.
  void Reply(const v1::Factor& factor, const FactorSummary& summary,
             const std::optional<Solution>& solution) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant from Start() to ReleaseResources(): the first, or the other two.
  std::unique_ptr<DirectSolveSteps> direct_;
  std::unique_ptr<FactorStep> factor_;
  std::unique_ptr<SolveStep> solve_;
  std::optional<InsertOptions> insert_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_FACTORIZE_AND_SOLVE_CALL_H_
