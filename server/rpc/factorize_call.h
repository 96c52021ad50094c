// Factorize and Refactorize: they differ in what becomes of the factor.
#ifndef CROUT_SERVER_RPC_FACTORIZE_CALL_H_
#define CROUT_SERVER_RPC_FACTORIZE_CALL_H_

#include <atomic>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "server/rpc/factor_step.h"
#include "server/rpc/job_call.h"

namespace crout {

// Holds a request_id while its call runs, and lets go of it unless the factor was inserted.
class RequestClaim {
 public:
  // The names outlive it: once the id is claimed, nothing may fail before this holds it.
  RequestClaim(FactorCache* cache, std::string_view tenant, std::string_view request_id)
      : cache_(cache), tenant_(tenant), request_id_(request_id) {}
  ~RequestClaim() {
    if (cache_ != nullptr) cache_->AbandonRequest(tenant_, request_id_);
  }
  RequestClaim(const RequestClaim&) = delete;  // One claim, one holder.
  RequestClaim& operator=(const RequestClaim&) = delete;

  // Insert has taken it over.
  void Complete() { cache_ = nullptr; }

 private:
  FactorCache* cache_;
  const std::string_view tenant_;
  const std::string_view request_id_;
};

// A call that answers with a factor. Its members are constant from Start() to ReleaseResources().
class FactoringCall : public JobCall<NewFactor> {
 protected:
  using JobCall::JobCall;

  // Puts the factor where the call wants it.
  virtual absl::StatusOr<FactorInfo> Store(NewFactor factor)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  virtual grpc::ByteBuffer Encode(const v1::Factor& factor) = 0;
  // Answers and ends the call.
  virtual void SendFactor(const FactorInfo& info) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseResources() override;

  std::unique_ptr<FactorStep> factor_;

 private:
  double PredictSeconds() final { return factor_->PredictSeconds(); }
  std::optional<Gathering> CanGather() final {
    if (!factor_->gathers()) return std::nullopt;
    return Gathering{.dtype = factor_->upload().shape().dtype};
  }
  absl::Status PutIn(ExecutionContext& context, GatheredSystem& system, CallTimings& timings) final;
  absl::StatusOr<NewFactor> TakeOut(GatheredSystem& system, const GatheredTimings& batch,
                                    CallTimings& timings) final;
  absl::StatusOr<NewFactor> Run(ExecutionContext& context, CallTimings& timings) final;
  absl::StatusOr<std::optional<NewFactor>> FindSingular() final { return factor_->FindSingular(); }
  void Reply(NewFactor factor) final ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
};

// With a request_id, a call whose payload has arrived outlives its client: the factor is kept for
// who asks again. A later call with the id waits for the one that holds it, with no more than a
// small first message, charged.
class FactorizeCall final : public FactoringCall, public RequestWaiter {
 public:
  FactorizeCall(ServerCore& core, grpc::CallbackServerContext* context)
      : FactoringCall(core, context, Method::kFactorize, ProgressEvent<v1::FactorizeResponse>) {}

  void EnforceLimits(Clock::time_point now) override;
  void OnRequestSettled() noexcept override;

 private:
  // How long the work goes on for nobody.
  static constexpr Clock::duration kKeepForRetry = std::chrono::minutes(1);

  // The step, once the id is this call's. None where the call has been answered with the id's
  // factor, or waits for it: then OnRequestSettled() comes.
  absl::StatusOr<std::vector<PayloadStep*>> Claim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Claims again, and goes on or answers.
  void GoOn();
  bool OutlivesClient() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return claim_.has_value() && half_closed();
  }
  absl::StatusOr<std::vector<PayloadStep*>> Start(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<FactorInfo> Store(NewFactor factor) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  grpc::ByteBuffer Encode(const v1::Factor& factor) override;
  void ReleaseResources() override;

  InsertOptions insert_;
  std::optional<RequestClaim> claim_;
  Reservation waiting_;  // for the first message, while the call waits
  // OnRequestSettled() could not tell: EnforceLimits() does.
  std::atomic<bool> settled_ = false;
};

class RefactorizeCall final : public FactoringCall {
 public:
  RefactorizeCall(ServerCore& core, grpc::CallbackServerContext* context)
      : FactoringCall(core, context, Method::kRefactorize, ProgressEvent<v1::RefactorizeResponse>) {
  }

 private:
  absl::StatusOr<std::vector<PayloadStep*>> Start(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drops a singular factor that the caller does not want: its description has no handle.
  absl::StatusOr<FactorInfo> Store(NewFactor factor) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // After such a one, FAILED_PRECONDITION.
  void SendFactor(const FactorInfo& info) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  grpc::ByteBuffer Encode(const v1::Factor& factor) override;
  void ReleaseResources() override;

  Handle handle_;
  bool replace_if_singular_ = false;
  int64_t kept_version_ = 0;  // 0: none, the factor was replaced
  // The version to replace: it must not be evicted to make room for its successor.
  std::optional<FactorCache::Pin> old_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_FACTORIZE_CALL_H_
