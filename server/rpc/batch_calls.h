// FactorizeBatch, SolveBatch and FactorizeAndSolveBatch: many matrices of different sizes, one
// handle.
#ifndef CROUT_SERVER_RPC_BATCH_CALLS_H_
#define CROUT_SERVER_RPC_BATCH_CALLS_H_

#include <memory>
#include <optional>
#include <vector>

#include "server/rpc/batch_steps.h"
#include "server/rpc/job_call.h"

namespace crout {

// Their members are constant from Start() to ReleaseResources().

class FactorizeBatchCall final : public JobCall<BatchAnswer> {
 public:
  FactorizeBatchCall(ServerCore& core, grpc::CallbackServerContext* context)
      : JobCall(core, context, Method::kFactorizeBatch, ProgressEvent<v1::FactorizeBatchResponse>) {
  }

 private:
  absl::StatusOr<std::vector<PayloadStep*>> Start(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The batch to replace, of which the new one has the sizes.
  absl::Status Replaces(const v1::FactorizeBatchHeader& header)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  double PredictSeconds() override { return batch_->PredictSeconds(); }
  absl::StatusOr<BatchAnswer> Run(ExecutionContext& context, CallTimings& timings) override;
  void Reply(BatchAnswer answer) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseResources() override;

  InsertOptions insert_;
  std::optional<Handle> replaced_;
  // The version to replace: it must not be evicted to make room for its successor.
  std::optional<FactorCache::Pin> old_;
  std::unique_ptr<BatchFactorStep> batch_;
};

struct SolveBatchAnswer {
  BatchSolution solution;
  bool promoted = false;  // the factor, to its device
};

class SolveBatchCall final : public JobCall<SolveBatchAnswer, v1::PHASE_SOLVE> {
 public:
  SolveBatchCall(ServerCore& core, grpc::CallbackServerContext* context)
      : JobCall(core, context, Method::kSolveBatch, ProgressEvent<v1::SolveBatchResponse>) {}

 private:
  absl::StatusOr<std::vector<PayloadStep*>> Start(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  double PredictSeconds() override { return solve_->PredictSeconds(); }
  absl::StatusOr<SolveBatchAnswer> Run(ExecutionContext& context, CallTimings& timings) override;
  void Reply(SolveBatchAnswer answer) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseResources() override;

  std::optional<FactorCache::Pin> pin_;
  std::unique_ptr<BatchSolveStep> solve_;
};

struct SolvedBatchAnswer {
  BatchAnswer batch;
  BatchSolution solution;
};

class FactorizeAndSolveBatchCall final : public JobCall<SolvedBatchAnswer> {
 public:
  FactorizeAndSolveBatchCall(ServerCore& core, grpc::CallbackServerContext* context)
      : JobCall(core, context, Method::kFactorizeAndSolveBatch,
                ProgressEvent<v1::FactorizeAndSolveBatchResponse>) {}

 private:
  absl::StatusOr<std::vector<PayloadStep*>> Start(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  double PredictSeconds() override { return batch_->PredictSeconds() + solve_->PredictSeconds(); }
  absl::StatusOr<SolvedBatchAnswer> Run(ExecutionContext& context, CallTimings& timings) override;
  void Reply(SolvedBatchAnswer answer) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseResources() override;

  std::optional<InsertOptions> insert_;
  std::unique_ptr<BatchFactorStep> batch_;
  std::unique_ptr<BatchSolveStep> solve_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_BATCH_CALLS_H_
