// SPDX-License-Identifier: Apache-2.0

// Factorize: caches the factor of a matrix or of a batch, at most once for each request_id.
#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"
#include "server/engine/plan/cached_copy.h"
#include "server/engine/plan/factor_plan.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/decode_options.h"
#include "server/rpc/handlers/factor_reply.h"
#include "server/rpc/handlers/handlers.h"
#include "server/rpc/stream/job_handler.h"

namespace crout {
namespace {

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

// Inserts the factor of its call into the cache, at most once for each request_id. A call with a
// request_id continues after its client has left, once its payload has arrived: a retry with the
// same id then gets the factor. A later call with the id waits for the call that holds it. While it
// waits, it stores only its first message, which must be small and is charged to its peer.
class IdempotentHandler : public JobHandler<FactorResult, v1::FactorizeResponse>,
                          public RequestWaiter {
 public:
  using JobHandler::JobHandler;

  void OnClaimEnded() noexcept final {
    try {
      call_.core().releasing.Schedule(call_.tenant(),
                                      [self = call_.shared_from_this(), this] { ClaimAgain(); });
    } catch (const std::bad_alloc&) {
      claim_ended_ = true;
    }
  }

 protected:
  // Answers, now or later, with the factor that the id already has. Returns an error if the factor
  // is not of this call's kind, and NOT_FOUND if it was removed meanwhile: the id is then claimed
  // again.
  virtual absl::Status AnswerWith(const FactorInfo& existing)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) = 0;

  // Inserts the new factor into the cache and completes the claim.
  absl::StatusOr<FactorInfo> Insert(NewFactor factor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    absl::StatusOr<FactorInfo> info = call_.core().engine.cache.Insert(std::move(factor), insert_);
    if (info.ok() && claim_) claim_->Complete();
    return info;
  }

  void ReleaseResources() override {
    JobHandler::ReleaseResources();
    claim_.reset();
    if (insert_.request_id.empty()) return;
    request_ids().StopAwaiting(call_.tenant(), insert_.request_id, this);
  }

  InsertOptions insert_;  // set by MakePlan()

 private:
  // Time for which the call continues after its client has left, if no other call awaits the id.
  static constexpr CallBase::Clock::duration kTimeForRetry = std::chrono::minutes(1);

  RequestIds& request_ids() const { return call_.core().engine.cache.request_ids(); }

  absl::StatusOr<std::vector<PayloadStep*>> Start(const StreamMessage& first) final
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    CROUT_ASSIGN_OR_RETURN(steps_, JobHandler::Start(first));
    return Claim();
  }

  bool OutlivesClient() const final ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    return claim_.has_value() && call_.holds_payload();
  }

  void EnforceLimits(CallBase::Clock::time_point now) final {
    if (claim_ended_.exchange(false)) OnClaimEnded();
    MutexLock lock(&call_.mutex());
    const auto left = call_.client_left_at();
    if (!call_.needs_result() || !left || now - *left < kTimeForRetry) return;
    if (request_ids().IsAwaited(call_.tenant(), insert_.request_id)) return;
    call_.End(absl::CancelledError("no retry requested the factor"));
  }

  // Claims the request_id, if there is one, and returns the steps. Returns no steps if the call is
  // answered or waits for the id.
  absl::StatusOr<std::vector<PayloadStep*>> Claim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    if (insert_.request_id.empty()) return StepsOfNewFactor();
    FactorCache& cache = call_.core().engine.cache;
    while (true) {
      const auto existing = cache.ClaimRequest(call_.tenant(), insert_.request_id);
      if (existing.ok() && existing->has_value()) {
        const absl::Status answered = AnswerWith(**existing);
        if (absl::IsNotFound(answered)) continue;
        CROUT_RETURN_IF_ERROR(answered);
        return std::vector<PayloadStep*>{};
      }
      if (existing.ok()) {
        claim_.emplace(&cache, call_.tenant(), insert_.request_id);
        waiting_.Release();
        return StepsOfNewFactor();
      }
      if (!absl::IsAborted(existing.status())) return existing.status();
      CROUT_ASSIGN_OR_RETURN(waiting_, call_.StoreFirstMessage());
      const std::shared_ptr<RequestWaiter> waiter(call_.shared_from_this(), this);
      if (request_ids().Await(call_.tenant(), insert_.request_id, waiter)) {
        return std::vector<PayloadStep*>{};
      }
    }
  }

  // Returns the steps, or an error if the tenant may not cache another factor.
  absl::StatusOr<std::vector<PayloadStep*>> StepsOfNewFactor()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    CROUT_RETURN_IF_ERROR(call_.CheckFactors());
    return steps_;
  }

  // Claims the id again after a wait. Then starts the steps or answers.
  void ClaimAgain() {
    call_.DoWork([this] {
      MutexLock lock(&call_.mutex());
      if (!call_.needs_result()) return;
      absl::StatusOr<std::vector<PayloadStep*>> steps = Claim();
      if (!steps.ok()) return call_.End(steps.status());
      if (steps->empty()) return;
      call_.Proceed(*std::move(steps));
      call_.Pump();
    });
  }

  std::vector<PayloadStep*> steps_;  // constant after Start()
  std::optional<RequestClaim> claim_;
  PeerShares::Charge waiting_;  // for the first message, while the call waits
  // Set if OnClaimEnded() failed to allocate its task. EnforceLimits() then calls it again.
  std::atomic<bool> claim_ended_ = false;
};

class FactorizeHandler final : public IdempotentHandler {
 public:
  using IdempotentHandler::IdempotentHandler;

 private:
  absl::StatusOr<std::unique_ptr<Plan>> MakePlan(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    ServerCore& core = call_.core();
    v1::FactorizeHeader header;
    CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
    CROUT_ASSIGN_OR_RETURN(insert_,
                           DecodeCacheOptions(header.cache(), call_.tenant(), core.limits));
    if (insert_.durable) {
      CROUT_RETURN_IF_ERROR(core.engine.cache.CheckDurable("cache.durable", insert_.tenant));
    }
    call_.observed().request_id = insert_.request_id;
    CROUT_ASSIGN_OR_RETURN(const MatrixSpec matrix, DecodeMatrix(header.matrix(), "matrix"));
    CROUT_ASSIGN_OR_RETURN(const FactorRequest request, DecodeOptions(header.options()));
    is_batch_ = matrix.batch.has_value();
    return PlanFactor(core.engine, matrix, request, call_.tenant());
  }

  NewFactor* Unstored(FactorResult& result) override {
    return insert_.durable ? &result.factor : nullptr;
  }

  absl::Status WriteFile(NewFactor& factor) override {
    return call_.core().engine.cache.StoreForInsert(factor, insert_);
  }

  void Reply(FactorResult result) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    ObserveFactor(call_, result.factor);
    const absl::StatusOr<FactorInfo> info = Insert(std::move(result.factor));
    if (!info.ok()) return call_.End(info.status());
    EndWithFactor<v1::FactorizeResponse>(call_, *info, std::move(result.figures));
  }

  // Answers asynchronously for a batch, because the figures of the members must first be copied
  // from the factor.
  absl::Status AnswerWith(const FactorInfo& existing) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    if (existing.summary.batch.has_value() != is_batch_) {
      return FieldError(
          absl::StatusCode::kFailedPrecondition, "cache.request_id",
          absl::StrCat("this id belongs to the factor of ",
                       is_batch_ ? "a single matrix, not of a batch" : "a batch, not of a matrix",
                       ": use another id"));
    }
    if (!is_batch_) {
      EndWithFactor<v1::FactorizeResponse>(call_, existing, nullptr);
      return absl::OkStatus();
    }
    Engine& engine = call_.core().engine;
    CROUT_ASSIGN_OR_RETURN(FactorCache::Pin pin,
                           engine.cache.Acquire(call_.tenant(), existing.handle));
    CROUT_ASSIGN_OR_RETURN(
        figures_, FiguresCopy::Create(engine, call_.tenant(), existing.handle, std::move(pin)));
    call_.Fetch(*figures_, [this] {
      call_.mutex().AssertHeld();
      EndWithFactor<v1::FactorizeResponse>(call_, figures_->info(), figures_->TakeReply());
    });
    return absl::OkStatus();
  }

  void ReleaseResources() override {
    IdempotentHandler::ReleaseResources();
    figures_.reset();
  }

  bool is_batch_ = false;  // constant after MakePlan()
  // The figures of the batch that belongs to a repeated request_id.
  std::unique_ptr<FiguresCopy> figures_;
};

}  // namespace

std::unique_ptr<StreamHandler> MakeFactorize(StreamCall& call) {
  return std::make_unique<FactorizeHandler>(call);
}

}  // namespace crout
