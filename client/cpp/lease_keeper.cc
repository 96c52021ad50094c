// SPDX-License-Identifier: Apache-2.0

#include "client/cpp/lease_keeper.h"

#include <algorithm>
#include <exception>
#include <system_error>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "client/cpp/connection.h"
#include "crout/status.h"

namespace crout {
inline namespace api {
namespace internal {
namespace {

// Divisors of the lease's length that give the time to the next renewal, and to the next attempt
// after a failure.
constexpr int kRenewAfter = 2;
constexpr int kRetryAfter = 16;
// Limits of these times, for very short and very long leases.
constexpr absl::Duration kMinPause = absl::Milliseconds(20);
constexpr absl::Duration kMaxPause = absl::Hours(24);
// A renewal may take a quarter of the lease, within these limits.
constexpr absl::Duration kMinTimeout = absl::Seconds(5);
constexpr absl::Duration kMaxTimeout = absl::Minutes(1);

// Whether another attempt cannot succeed.
bool IsFinal(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsInvalidArgument(status);
}

// Limit of the times that one call makes its factor again.
constexpr int kMaxTimesLost = 2;

// Whether the server no longer has the factor although no client released it.
bool IsLost(const absl::Status& status) {
  return absl::IsNotFound(status) && Reason(status) != "HANDLE_RELEASED";
}

absl::Status RenewalError(const absl::Status& status) {
  absl::Status result(status.code(),
                      absl::StrCat("the factor's lease was not renewed: ", status.message()));
  status.ForEachPayload([&](absl::string_view type_url, const absl::Cord& payload) {
    result.SetPayload(type_url, payload);
  });
  return result;
}

}  // namespace

struct LeaseKeeper::Lease {
  const std::string handle;
  const absl::Duration length;
  // Guarded by the keeper's mutex.
  absl::Status status;
  Clock::time_point due;
  bool dropped = false;
};

LeaseKeeper::LeaseKeeper(Renew renew) : renew_(std::move(renew)) {}

LeaseKeeper::~LeaseKeeper() {
  stop_.Cancel();
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<LeaseKeeper::Lease> LeaseKeeper::Keep(std::string handle, absl::Duration length) {
  auto lease = std::make_shared<Lease>(Lease{std::move(handle), length, absl::OkStatus(), {}});
  std::lock_guard lock(mutex_);
  Settle(lease, Clock::now(), absl::OkStatus());
  return lease;
}

void LeaseKeeper::Drop(const std::shared_ptr<Lease>& lease) {
  std::lock_guard lock(mutex_);
  lease->dropped = true;
  queue_.erase({lease->due, lease});
}

absl::Status LeaseKeeper::StatusOf(const Lease& lease) const {
  std::lock_guard lock(mutex_);
  return lease.status;
}

absl::Status LeaseKeeper::Confirm(const std::shared_ptr<Lease>& lease, const CallOptions& call) {
  const absl::Status last = StatusOf(*lease);
  if (last.ok() || IsFinal(last)) return last;
  const Clock::time_point begin = Clock::now();
  CallOptions renewal;
  renewal.timeout = call.timeout;
  renewal.priority = call.priority;
  renewal.cancellation = call.cancellation;
  renewal.traceparent = call.traceparent;
  const absl::Status status = RenewNow(*lease, renewal);
  std::lock_guard lock(mutex_);
  Settle(lease, begin, status);
  return status;
}

absl::Status LeaseKeeper::RenewNow(const Lease& lease, const CallOptions& call) const {
  // An exception must not leave the thread. Only failed allocations throw.
  try {
    const absl::Status status = renew_(lease.handle, lease.length, call);
    return status.ok() ? status : RenewalError(status);
  } catch (const std::exception&) {
    return absl::ResourceExhaustedError("");
  }
}

void LeaseKeeper::Settle(const std::shared_ptr<Lease>& lease, Clock::time_point begin,
                         absl::Status status) {
  if (lease->dropped) return;
  queue_.erase({lease->due, lease});
  lease->status = std::move(status);
  if (IsFinal(lease->status)) return;
  const absl::Duration pause = lease->length / (lease->status.ok() ? kRenewAfter : kRetryAfter);
  Enqueue(lease, begin + absl::ToChronoNanoseconds(std::clamp(pause, kMinPause, kMaxPause)));
}

void LeaseKeeper::Enqueue(const std::shared_ptr<Lease>& lease, Clock::time_point due) {
  lease->due = due;
  queue_.insert({due, lease});
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { Run(); });
    } catch (const std::system_error& error) {
      lease->status = RenewalError(absl::ResourceExhaustedError(error.what()));
    }
  }
  wake_.notify_all();
}

void LeaseKeeper::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (queue_.empty()) {
      wake_.wait(lock);
      continue;
    }
    const auto [due, lease] = *queue_.begin();
    const Clock::time_point begin = Clock::now();
    if (begin < due) {
      wake_.wait_until(lock, due);
      continue;
    }
    queue_.erase(queue_.begin());
    lock.unlock();
    CallOptions call;
    call.timeout = std::clamp(lease->length / 4, kMinTimeout, kMaxTimeout);
    call.cancellation = &stop_;
    const absl::Status status = RenewNow(*lease, call);
    lock.lock();
    Settle(lease, begin, status);
  }
}

absl::Status HeldFactor::Check(const CacheOptions& cache) {
  if (cache.request_id.empty() || cache.lease != absl::ZeroDuration()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("a request_id needs a lease: set cache.lease");
}

absl::StatusOr<std::shared_ptr<HeldFactor>> HeldFactor::Hold(std::shared_ptr<Client> client,
                                                             const FactorDescription& made,
                                                             const CacheOptions& cache,
                                                             const CallOptions& call) {
  const absl::Duration wanted = cache.lease;
  // Both times are from the server's clock, which may differ from the local one.
  const absl::Duration granted = made.lease_expire_time.value_or(absl::UnixEpoch()) -
                                 made.create_time.value_or(absl::UnixEpoch());
  auto hold = std::make_shared<HeldFactor>(std::move(client), made.handle,
                                           wanted == absl::ZeroDuration() ? granted : wanted);
  if (cache.request_id.empty()) return hold;
  const auto renewed = hold->client().Renew(hold->handle(), wanted, call);
  if (!renewed.ok()) return renewed.status();
  return hold;
}

HeldFactor::HeldFactor(std::shared_ptr<Client> client, std::string handle, absl::Duration lease)
    : client_(std::move(client)),
      lease_length_(lease),
      current_{.handle = handle, .lease = client_->leases_->Keep(handle, lease)} {}

absl::Status HeldFactor::LeaseStatus() const {
  const Current now = current();
  return now.lease != nullptr ? client_->leases_->StatusOf(*now.lease) : absl::OkStatus();
}

void HeldFactor::SetOrigin(FactorOrigin origin) {
  std::lock_guard lock(mutex_);
  origin_ = std::move(origin);
}

bool HeldFactor::has_origin() const {
  std::lock_guard lock(mutex_);
  return origin_.has_value();
}

absl::Status HeldFactor::Use(
    HeldFactor* hold, const CallOptions& call,
    absl::FunctionRef<absl::Status(const std::string& handle, const CallOptions& call)> use) {
  if (hold == nullptr) {
    return absl::FailedPreconditionError(
        "the factor was released or moved from: factor the matrix again");
  }
  const absl::Time deadline = hold->client_->connection_->DeadlineOf(call);
  CallOptions rest = call;
  for (int times_lost = 0;; ++times_lost) {
    const Current now = hold->current();
    const auto remaining = [&] {
      // A duration of 0 means no limit.
      return std::max(deadline - absl::Now(), absl::Nanoseconds(1));
    };
    rest.timeout = remaining();
    absl::Status status =
        now.lease != nullptr ? hold->client_->leases_->Confirm(now.lease, rest) : absl::OkStatus();
    if (status.ok()) status = use(now.handle, rest);
    if (!IsLost(status) || !hold->has_origin() || times_lost == kMaxTimesLost) return status;
    rest.timeout = remaining();
    if (absl::Status made = hold->MakeAgain(now.handle, rest); !made.ok()) return made;
  }
}

absl::Status HeldFactor::MakeAgain(const std::string& lost, const CallOptions& call) {
  std::optional<FactorOrigin> origin;
  {
    std::lock_guard lock(mutex_);
    if (current_.handle != lost) return absl::OkStatus();
    origin = origin_;
  }
  // With this id all threads that find the factor lost share one factorization.
  origin->cache.request_id = absl::StrCat("again-", lost);
  origin->cache.lease = lease_length_;
  const auto made = client_->Factor(origin->matrix, origin->options, origin->cache, call);
  if (!made.ok()) return made.status();
  {
    std::lock_guard lock(mutex_);
    if (current_.handle != lost) return absl::OkStatus();
    if (!dropped_) {
      if (current_.lease != nullptr) client_->leases_->Drop(current_.lease);
      current_ = {.handle = made->handle,
                  .lease = client_->leases_->Keep(made->handle, lease_length_)};
      return absl::OkStatus();
    }
  }
  return client_->Release(made->handle, call);
}

void HeldFactor::Drop() {
  std::lock_guard lock(mutex_);
  dropped_ = true;
  if (current_.lease != nullptr) client_->leases_->Drop(current_.lease);
}

}  // namespace internal
}  // namespace api
}  // namespace crout
