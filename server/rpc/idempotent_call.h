// SPDX-License-Identifier: Apache-2.0

// Calls that make a factor at most once for each request_id.
#ifndef CROUT_SERVER_RPC_IDEMPOTENT_CALL_H_
#define CROUT_SERVER_RPC_IDEMPOTENT_CALL_H_

#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/util/status_macros.h"
#include "server/rpc/upload_call.h"

namespace crout {

// Holds a request_id while its call runs, and lets go of it unless the factor was inserted.
class RequestClaim {
 public:
  // The names outlive it: once the id is claimed, nothing may fail before this holds it.
  RequestClaim(FactorCache* cache, std::string_view tenant, std::string_view request_id)
      : cache_(cache), tenant_(tenant), request_id_(request_id) {}
  ~RequestClaim() {
    if (cache_ != nullptr) cache_->request_ids().Abandon(tenant_, request_id_);
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

// With a request_id, a call whose payload has arrived outlives its client: the factor is kept for
// who asks again. A later call with the id waits for the one that holds it, with no more than a
// small first message, charged. Base: a JobCall.
template <class Base>
class IdempotentCall : public Base, public RequestWaiter {
 public:
  using Clock = typename Base::Clock;

  void EnforceLimits(typename Base::Clock::time_point now) override {
    Base::EnforceLimits(now);
    if (settled_.exchange(false)) OnRequestSettled();
    MutexLock lock(&this->mutex_);
    const auto left = this->left();
    if (!this->wanted() || !left || now - *left < kKeepForRetry) return;
    if (this->core_.cache.request_ids().IsAwaited(this->tenant_, insert_.request_id)) return;
    this->End(absl::CancelledError("nobody asked for the factor again"));
  }

  void OnRequestSettled() noexcept override {
    try {
      this->core_.releasing.Schedule(this->tenant_,
                                     [self = std::static_pointer_cast<IdempotentCall>(
                                          this->shared_from_this())] { self->GoOn(); });
    } catch (const std::bad_alloc&) {
      settled_ = true;
    }
  }

 protected:
  using Base::Base;

  // What a call does once the id is its own, or where it has none.
  virtual std::vector<PayloadStep*> Steps() ABSL_EXCLUSIVE_LOCKS_REQUIRED(this->mutex_) = 0;
  // The id has this factor: answers with it, now or later. An error, if it is none of this call's
  // kind; NOT_FOUND, if it is gone meanwhile and the call shall ask again.
  virtual absl::Status AnswerWith(const FactorInfo& living)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(this->mutex_) = 0;

  // The steps, once the id is this call's, if `insert_` has one. None where the call has been
  // answered with the id's factor, or waits for it: then OnRequestSettled() comes.
  absl::StatusOr<std::vector<PayloadStep*>> Claim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(this->mutex_) {
    if (insert_.request_id.empty()) return Steps();
    FactorCache& cache = this->core_.cache;
    while (true) {
      const auto living = cache.ClaimRequest(this->tenant_, insert_.request_id);
      if (living.ok() && living->has_value()) {
        const absl::Status answered = AnswerWith(**living);
        if (absl::IsNotFound(answered)) continue;
        CROUT_RETURN_IF_ERROR(answered);
        return std::vector<PayloadStep*>{};
      }
      if (living.ok()) {
        claim_.emplace(&cache, this->tenant_, insert_.request_id);
        waiting_.Release();
        return Steps();
      }
      if (!absl::IsAborted(living.status())) return living.status();
      CROUT_ASSIGN_OR_RETURN(waiting_, this->KeepFirstMessage());
      const std::shared_ptr<RequestWaiter> waiter(this->shared_from_this(), this);
      if (cache.request_ids().Await(this->tenant_, insert_.request_id, waiter)) {
        return std::vector<PayloadStep*>{};
      }
    }
  }

  // The new factor into the cache, and for whoever waits.
  FactorInfo InsertFactor(NewFactor factor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(this->mutex_) {
    FactorInfo info = this->core_.cache.Insert(std::move(factor), insert_);
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
      this->core_.cache.request_ids().StopAwaiting(this->tenant_, insert_.request_id, this);
    }
  }

  InsertOptions insert_;  // constant from Claim() on

 private:
  // How long the work goes on for nobody.
  static constexpr typename Clock::duration kKeepForRetry = std::chrono::minutes(1);

  // Claims again, and goes on or answers.
  void GoOn() {
    this->DoWork([this] {
      MutexLock lock(&this->mutex_);
      if (!this->wanted()) return;
      absl::StatusOr<std::vector<PayloadStep*>> steps = Claim();
      if (!steps.ok()) return this->End(steps.status());
      if (steps->empty()) return;
      this->Proceed(*std::move(steps));
      this->Pump();
    });
  }

  std::optional<RequestClaim> claim_;
  PeerShares::Charge waiting_;  // for the first message, while the call waits
  // OnRequestSettled() could not tell: EnforceLimits() does.
  std::atomic<bool> settled_ = false;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_IDEMPOTENT_CALL_H_
