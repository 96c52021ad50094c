// SPDX-License-Identifier: Apache-2.0

// Factorize and Refactorize. They differ in how they store the factor.
#ifndef CROUT_SERVER_RPC_HANDLERS_FACTORIZE_CALL_H_
#define CROUT_SERVER_RPC_HANDLERS_FACTORIZE_CALL_H_

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "server/engine/plan/factor_step.h"
#include "server/rpc/handlers/idempotent_call.h"
#include "server/rpc/stream/job_call.h"

namespace crout {

// Base of the calls that answer with a factor. The members are constant from Start() to
// ReleaseResources().
class FactoringCall : public JobCall<NewFactor> {
 protected:
  using JobCall::JobCall;

  // Stores the factor in the cache as the request asks, and returns its description.
  virtual absl::StatusOr<FactorInfo> Store(NewFactor factor)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  virtual grpc::ByteBuffer Encode(const v1::Factor& factor) = 0;
  // Sends the answer and ends the call.
  virtual void SendFactor(const FactorInfo& info) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseResources() override;

  std::unique_ptr<FactorStep> factor_;

 private:
  double PredictSeconds() final { return factor_->PredictSeconds(); }
  std::optional<BatchKey> GetBatchKey() final {
    if (!factor_->batched()) return std::nullopt;
    return BatchKey{.dtype = factor_->upload().shape().dtype};
  }
  absl::Status AddToBatch(ExecutionContext& context, DynamicBatchSystem& system,
                          CallTimings& timings) final;
  absl::StatusOr<NewFactor> ExtractFromBatch(DynamicBatchSystem& system,
                                             const DynamicBatchTimings& batch,
                                             CallTimings& timings) final;
  absl::StatusOr<NewFactor> Run(ExecutionContext& context, CallTimings& timings) final;
  absl::StatusOr<std::optional<NewFactor>> FindSingular() final { return factor_->FindSingular(); }
  void Reply(NewFactor factor) final ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
};

class FactorizeCall final : public IdempotentCall<FactoringCall> {
 public:
  FactorizeCall(ServerCore& core, grpc::CallbackServerContext* context)
      : IdempotentCall(core, context, Method::kFactorize, ProgressEvent<v1::FactorizeResponse>) {}

 private:
  absl::StatusOr<std::vector<PayloadStep*>> Start(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<PayloadStep*> Steps() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return {factor_.get()};
  }
  absl::Status AnswerWith(const FactorInfo& existing) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<FactorInfo> Store(NewFactor factor) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return InsertFactor(std::move(factor));
  }
  grpc::ByteBuffer Encode(const v1::Factor& factor) override;
};

class RefactorizeCall final : public FactoringCall {
 public:
  RefactorizeCall(ServerCore& core, grpc::CallbackServerContext* context)
      : FactoringCall(core, context, Method::kRefactorize, ProgressEvent<v1::RefactorizeResponse>) {
  }

 private:
  absl::StatusOr<std::vector<PayloadStep*>> Start(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drops a singular factor unless the request sets replace_if_singular. The description of a
  // dropped factor has no handle.
  absl::StatusOr<FactorInfo> Store(NewFactor factor) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the call with FAILED_PRECONDITION if the factor was dropped.
  void SendFactor(const FactorInfo& info) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  grpc::ByteBuffer Encode(const v1::Factor& factor) override;
  void ReleaseResources() override;

  Handle handle_;
  bool replace_if_singular_ = false;
  int64_t kept_version_ = 0;  // 0: the factor was replaced
  // Pins the version to replace, so that it is not evicted to make room for the new version.
  std::optional<FactorCache::Pin> old_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_HANDLERS_FACTORIZE_CALL_H_
