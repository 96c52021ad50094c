// SPDX-License-Identifier: Apache-2.0

// FactorizeBatch, SolveBatch and FactorizeAndSolveBatch: many matrices of different sizes under one
// handle.
#ifndef CROUT_SERVER_RPC_HANDLERS_BATCH_CALLS_H_
#define CROUT_SERVER_RPC_HANDLERS_BATCH_CALLS_H_

#include <memory>
#include <optional>
#include <vector>

#include "server/engine/plan/batch_steps.h"
#include "server/rpc/handlers/idempotent_call.h"
#include "server/rpc/handlers/solving_call.h"
#include "server/rpc/stream/job_call.h"

namespace crout {

// The members are constant from Start() to ReleaseResources(), except those that FactorizeBatchCall
// sets when it answers a repeated request_id: old_, existing_ and existing_figures_.

class FactorizeBatchCall final : public IdempotentCall<JobCall<BatchAnswer>> {
 public:
  FactorizeBatchCall(ServerCore& core, grpc::CallbackServerContext* context)
      : IdempotentCall(core, context, Method::kFactorizeBatch,
                       ProgressEvent<v1::FactorizeBatchResponse>) {}

 private:
  absl::StatusOr<std::vector<PayloadStep*>> Start(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Prepares the replacement of the handle's batch by a batch of the same sizes.
  absl::Status Replaces(const v1::FactorizeBatchHeader& header)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<PayloadStep*> Steps() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return {batch_.get()};
  }
  // Answers asynchronously, because the figures of the members must first be copied from the
  // factor.
  absl::Status AnswerWith(const FactorInfo& existing) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Copies the figures from host memory or, in a job, from the device, and then answers.
  void FetchFigures();
  // Returns false, and copies nothing, if the factor is in device memory.
  absl::StatusOr<bool> CopyFiguresFromHost();
  absl::Status CopyFiguresFromDevice(ExecutionContext& context);
  void SendExisting(const Device& device) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  double PredictSeconds() override { return batch_->PredictSeconds(); }
  absl::StatusOr<BatchAnswer> Run(ExecutionContext& context, CallTimings& timings) override;
  void Reply(BatchAnswer answer) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sends the answer and ends the call.
  void SendFactor(const FactorInfo& info, std::shared_ptr<const ReplyData> figures)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseResources() override;

  std::optional<Handle> replaced_;
  // Pins the version to replace, so that it is not evicted to make room for the new version. If a
  // request_id is repeated, pins the factor that belongs to the id.
  std::optional<FactorCache::Pin> old_;
  std::unique_ptr<BatchFactorStep> batch_;
  // The factor that belongs to a repeated request_id, and the figures of its members.
  FactorInfo existing_;
  ReplyData existing_figures_;
};

class SolveBatchCall final : public SolvingCall<BatchSolveStep, BatchSolution> {
 public:
  SolveBatchCall(ServerCore& core, grpc::CallbackServerContext* context)
      : SolvingCall(core, context, Method::kSolveBatch, ProgressEvent<v1::SolveBatchResponse>) {}

 private:
  absl::StatusOr<std::vector<PayloadStep*>> Start(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Reply(BatchSolution solution) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
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

#endif  // CROUT_SERVER_RPC_HANDLERS_BATCH_CALLS_H_
