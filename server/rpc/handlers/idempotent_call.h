// SPDX-License-Identifier: Apache-2.0

// Calls that make a factor at most once for each request_id.
#ifndef CROUT_SERVER_RPC_HANDLERS_IDEMPOTENT_CALL_H_
#define CROUT_SERVER_RPC_HANDLERS_IDEMPOTENT_CALL_H_

#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/util/status_macros.h"
#include "server/rpc/stream/upload_call.h"

namespace crout {

// Holds a request_id while its call runs. The destructor abandons the id unless Complete() was
// called.
class RequestClaim {
 public:
  // `tenant` and `request_id` must outlive the claim. They are not copied, because nothing may
  // fail between claiming the id and constructing this object.
  RequestClaim(FactorCache* cache, std::string_view tenant, std::string_view request_id)
      : cache_(cache), tenant_(tenant), request_id_(request_id) {}
  ~RequestClaim() {
    if (cache_ != nullptr) cache_->request_ids().Abandon(tenant_, request_id_);
  }
  RequestClaim(const RequestClaim&) = delete;  // An id has one claim.
  RequestClaim& operator=(const RequestClaim&) = delete;

  // Ends the claim after FactorCache::Insert() has taken over the id.
  void Complete() { cache_ = nullptr; }

 private:
  FactorCache* cache_;
  const std::string_view tenant_;
  const std::string_view request_id_;
};

// Adds request_ids to `Base`, a JobCall. A call with a request_id continues after its client has
// left, once its payload has arrived: a retry with the same id then gets the factor. A later call
// with the id waits for the call that holds it. While it waits, it keeps only its first message,
// which must be small and is charged to its peer.
template <class Base>
class IdempotentCall : public Base, public RequestWaiter {
 public:
  using Clock = typename Base::Clock;

  void EnforceLimits(typename Base::Clock::time_point now) override {
    Base::EnforceLimits(now);
    if (claim_ended_.exchange(false)) OnClaimEnded();
    MutexLock lock(&this->mutex_);
    const auto left = this->client_left_at();
    if (!this->needs_result() || !left || now - *left < kKeepForRetry) return;
    if (this->core_.engine.cache.request_ids().IsAwaited(this->tenant_, insert_.request_id)) return;
    this->End(absl::CancelledError("no retry requested the factor"));
  }

  void OnClaimEnded() noexcept override {
    try {
      this->core_.releasing.Schedule(this->tenant_,
                                     [self = std::static_pointer_cast<IdempotentCall>(
                                          this->shared_from_this())] { self->ResumeClaim(); });
    } catch (const std::bad_alloc&) {
      claim_ended_ = true;
    }
  }

 protected:
  using Base::Base;

  // Answers, now or later, with the factor that the id already has. Returns an error if the factor
  // is not of this call's kind, and NOT_FOUND if it was removed meanwhile: Claim() then claims the
  // id again.
  virtual absl::Status AnswerWith(const FactorInfo& existing)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(this->mutex_) = 0;

  // Makes the plan, which sets `insert_`, and claims the id.
  absl::StatusOr<std::vector<PayloadStep*>> Start(const StreamMessage& first) final
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(this->mutex_) {
    CROUT_ASSIGN_OR_RETURN(this->plan_, this->MakePlan(first));
    return Claim();
  }
  // Claims the id in `insert_`, if any, and returns the steps. Returns no steps if AnswerWith()
  // handled the call or if the call waits for the id. OnClaimEnded() ends the wait.
  absl::StatusOr<std::vector<PayloadStep*>> Claim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(this->mutex_) {
    if (insert_.request_id.empty()) return this->plan_->steps();
    FactorCache& cache = this->core_.engine.cache;
    while (true) {
      const auto existing = cache.ClaimRequest(this->tenant_, insert_.request_id);
      if (existing.ok() && existing->has_value()) {
        const absl::Status answered = AnswerWith(**existing);
        if (absl::IsNotFound(answered)) continue;
        CROUT_RETURN_IF_ERROR(answered);
        return std::vector<PayloadStep*>{};
      }
      if (existing.ok()) {
        claim_.emplace(&cache, this->tenant_, insert_.request_id);
        waiting_.Release();
        return this->plan_->steps();
      }
      if (!absl::IsAborted(existing.status())) return existing.status();
      CROUT_ASSIGN_OR_RETURN(waiting_, this->KeepFirstMessage());
      const std::shared_ptr<RequestWaiter> waiter(this->shared_from_this(), this);
      if (cache.request_ids().Await(this->tenant_, insert_.request_id, waiter)) {
        return std::vector<PayloadStep*>{};
      }
    }
  }

  // Inserts the new factor into the cache and completes the claim.
  FactorInfo InsertFactor(NewFactor factor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(this->mutex_) {
    FactorInfo info = this->core_.engine.cache.Insert(std::move(factor), insert_);
    if (claim_) claim_->Complete();
    return info;
  }

  bool OutlivesClient() const final ABSL_EXCLUSIVE_LOCKS_REQUIRED(this->mutex_) {
    return claim_.has_value() && this->half_closed();
  }

  void ReleaseResources() override {
    Base::ReleaseResources();
    claim_.reset();
    if (!insert_.request_id.empty()) {
      this->core_.engine.cache.request_ids().StopAwaiting(this->tenant_, insert_.request_id, this);
    }
  }

  InsertOptions insert_;  // constant from Claim() on

 private:
  // Time for which the call continues after its client has left, if no other call awaits the id.
  static constexpr typename Clock::duration kKeepForRetry = std::chrono::minutes(1);

  // Claims the id again after a wait; then starts the steps or answers.
  void ResumeClaim() {
    this->DoWork([this] {
      MutexLock lock(&this->mutex_);
      if (!this->needs_result()) return;
      absl::StatusOr<std::vector<PayloadStep*>> steps = Claim();
      if (!steps.ok()) return this->End(steps.status());
      if (steps->empty()) return;
      this->Proceed(*std::move(steps));
      this->Pump();
    });
  }

  std::optional<RequestClaim> claim_;
  PeerShares::Charge waiting_;  // for the first message, while the call waits
  // OnClaimEnded() failed to allocate its task; EnforceLimits() calls it again.
  std::atomic<bool> claim_ended_ = false;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_HANDLERS_IDEMPOTENT_CALL_H_
