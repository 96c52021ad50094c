// SPDX-License-Identifier: Apache-2.0

// Factorize and Refactorize. They differ in how they store the factor.
#ifndef CROUT_SERVER_RPC_HANDLERS_FACTORIZE_CALL_H_
#define CROUT_SERVER_RPC_HANDLERS_FACTORIZE_CALL_H_

#include <memory>
#include <optional>
#include <utility>

#include "server/engine/plan/factor_plan.h"
#include "server/rpc/handlers/idempotent_call.h"
#include "server/rpc/stream/job_call.h"

namespace crout {

// Base of the calls that answer with a factor. `Response` is the message of the reply.
template <class Response>
class FactoringCall : public JobCall<FactorResult> {
 public:
  FactoringCall(ServerCore& core, grpc::CallbackServerContext* context, Method method)
      : JobCall(core, context, method, ProgressEvent<Response>) {}

 protected:
  // Stores the factor in the cache as the request asks, and returns its description.
  virtual absl::StatusOr<FactorInfo> Store(NewFactor factor)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // Sends the answer and ends the call. `figures` are those of the members of a batch.
  virtual void SendFactor(const FactorInfo& info, std::shared_ptr<const ReplyData> figures)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    observed_.SetHandle(info.handle.ToString());
    observed_.algorithm = info.summary.algorithm;
    observed_.factor_bytes = info.bytes;
    Response response;
    *response.mutable_factor() = EncodeWithCounts(info);
    if (figures != nullptr) {
      return EndWithData(
          Response(), std::move(figures), [response](Response& last) { last.MergeFrom(response); },
          Response::kMemberDataFieldNumber);
    }
    Send([response = std::move(response)] { return Serialize(response); });
    End(absl::OkStatus());
  }

 private:
  void Reply(FactorResult result) final ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    result.factor.timings = ReplyTimings();
    ObserveQuality(core_, observed_, result.factor.factorization.summary);
    const absl::StatusOr<FactorInfo> info = Store(std::move(result.factor));
    if (!info.ok()) return End(info.status());
    SendFactor(*info, std::move(result.figures));
  }
};

class FactorizeCall final : public IdempotentCall<FactoringCall<v1::FactorizeResponse>> {
 public:
  FactorizeCall(ServerCore& core, grpc::CallbackServerContext* context)
      : IdempotentCall(core, context, Method::kFactorize) {}

 private:
  absl::StatusOr<std::unique_ptr<Plan>> MakePlan(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<FactorInfo> Store(NewFactor factor) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return InsertFactor(std::move(factor));
  }
  // Answers asynchronously for a batch, because the figures of the members must first be copied
  // from the factor.
  absl::Status AnswerWith(const FactorInfo& existing) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Copies the figures from host memory or, in a job, from the device, and then answers.
  void FetchFigures();
  // Returns false, and copies nothing, if the factor is in device memory.
  absl::StatusOr<bool> CopyFiguresFromHost();
  absl::Status CopyFiguresFromDevice(ExecutionContext& context);
  void SendExisting(const Device& device) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseResources() override;

  bool is_batch_ = false;  // constant after MakePlan()
  // The batch that belongs to a repeated request_id, and the figures of its members.
  std::optional<FactorCache::Pin> existing_pin_;
  FactorInfo existing_;
  ReplyData existing_figures_;
};

class RefactorizeCall final : public FactoringCall<v1::RefactorizeResponse> {
 public:
  RefactorizeCall(ServerCore& core, grpc::CallbackServerContext* context)
      : FactoringCall(core, context, Method::kRefactorize) {}

 private:
  absl::StatusOr<std::unique_ptr<Plan>> MakePlan(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drops a singular factor unless the request sets replace_if_singular. The description of a
  // dropped factor has no handle.
  absl::StatusOr<FactorInfo> Store(NewFactor factor) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the call with FAILED_PRECONDITION if the factor was dropped.
  void SendFactor(const FactorInfo& info, std::shared_ptr<const ReplyData> figures) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseResources() override;

  Handle handle_;
  bool replace_if_singular_ = false;
  int64_t kept_version_ = 0;  // 0: the factor was replaced
  // Pins the version to replace, so that it is not evicted to make room for the new version.
  std::optional<FactorCache::Pin> old_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_HANDLERS_FACTORIZE_CALL_H_
