// SPDX-License-Identifier: Apache-2.0

#include "server/engine/cache/memory_shares.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/util/clock.h"
#include "server/engine/quotas/quotas.h"

namespace crout {
namespace {

using Time = std::chrono::steady_clock::time_point;

// Longest retry delay for which memory is kept.
constexpr std::chrono::minutes kLongestRetry{10};

size_t Above(size_t a, size_t b) { return a > b ? a - b : 0; }

// Returns the bytes that the jobs and uploads of the tenant hold.
size_t UncachedBytes(const TenantShare& share) { return Above(share.bytes, share.cached_bytes); }

bool IsActive(const TenantShare& share) { return share.bytes > 0 || share.recent.linked(); }

// Counts an active share in the sums of its memory, or no longer for `sign` -1.
void CountActive(TierMemory& memory, const TenantShare& share, int sign) {
  if (!IsActive(share)) return;
  memory.equal_tenants += static_cast<size_t>(share.configured ? 0 : sign);
  memory.configured_bytes += static_cast<size_t>(sign) * share.configured.value_or(0);
}

// The shares of the tenants of a memory.
class Shares {
 public:
  // `own` is the share of the tenant that needs memory; null: no tenant.
  Shares(const TierMemory& memory, const TenantShare* own)
      : limit_(
            Above(memory.budget->limit(), Above(memory.budget->reserved(), memory.owned_bytes))) {
    size_t tenants = memory.equal_tenants;
    size_t configured = memory.configured_bytes;
    if (own != nullptr && !IsActive(*own)) {
      tenants += own->configured ? 0 : 1;
      configured += own->configured.value_or(0);
    }
    equal_ = Above(limit_, configured) / std::max<size_t>(tenants, 1);
  }

  size_t Of(const TenantShare& share) const {
    return share.configured ? std::min(*share.configured, limit_) : equal_;
  }
  // Returns the bytes of the tenant above its share.
  size_t AboveShare(const TenantShare& share) const { return Above(share.bytes, Of(share)); }

 private:
  size_t limit_;      // the memory without bytes that belong to no tenant
  size_t equal_ = 0;  // each share that is not configured
};

// Applies the soft quota of the owner to its share.
void Configure(TierMemory& memory, const ShareOwner& owner) {
  const int64_t quota = owner.memory_quota().second;
  const bool is_soft = owner.limits().soft && quota != QuotaLimits::kNoLimit;
  const auto configured = is_soft ? std::optional(static_cast<size_t>(quota)) : std::nullopt;
  TenantShare& share = owner.share();
  if (share.configured == configured) return;
  UpdateShare(memory, share, [&] { share.configured = configured; });
}

// Returns the bytes by which the tenant would exceed its hard quota of the memory.
size_t AboveQuota(const ShareRequest& request) {
  const ShareOwner* const owner = request.owner;
  if (owner == nullptr || owner->limits().soft) return 0;
  const auto limit = static_cast<size_t>(owner->memory_quota().second);
  return Above(owner->share().bytes, limit) +
         Above(request.bytes, Above(limit, owner->share().bytes));
}

// Returns true if the jobs of the tenant would exceed their quota of bytes.
bool IsAboveBytesInFlight(const ShareRequest& request) {
  const ShareOwner* const owner = request.owner;
  if (owner == nullptr || owner->use() != ShareUse::kJob || owner->tier() == Tier::kStore)
    return false;
  const auto limit = static_cast<size_t>(owner->limits().bytes_in_flight);
  return request.bytes > Above(limit, owner->account().bytes_in_flight());
}

// Keeps `bytes` for the jobs of the owner's tenant until `until`, unless more is kept for them.
void Keep(TierMemory& memory, ShareOwner& owner, size_t bytes, Time until) {
  TenantShare& share = owner.share();
  if (bytes < share.kept_bytes && SteadyNow() < share.kept_until) return;
  share.kept_bytes = bytes;
  share.kept_until = until;
  if (share.recent.linked()) return;
  UpdateShare(memory, share, [&] { share.recent.Link(memory.recent); });
  share.keeper = owner.shared_from_this();
}

}  // namespace

std::pair<const char*, int64_t> ShareOwner::memory_quota() const {
  switch (memory_.tier) {
    case Tier::kDevice:
      return {"device_bytes", limits_.device_bytes};
    case Tier::kHost:
      return {"host_bytes", limits_.host_bytes};
    case Tier::kStore:
      break;
  }
  return {"store_bytes", limits_.store_bytes};
}

bool ShareOwner::TryAdd(size_t bytes) noexcept {
  MutexLock lock(&mutex_);
  Configure(memory_, *this);
  const ShareRequest request = {.bytes = bytes, .owner = this};
  if (AboveQuota(request) > 0 || IsAboveBytesInFlight(request)) return false;
  if (!RoomFor(memory_, request).Fits(bytes)) return false;
  Change(bytes, 0);
  if (use_ == ShareUse::kJob) Keep(memory_, *this, UncachedBytes(share()), SteadyNow() + kKeptFor);
  return true;
}

void ShareOwner::Add(size_t bytes) noexcept {
  MutexLock lock(&mutex_);
  Change(bytes, 0);
}

void ShareOwner::Subtract(size_t bytes) noexcept {
  MutexLock lock(&mutex_);
  Change(0, bytes);
}

void ShareOwner::Change(size_t more, size_t fewer) {
  const int64_t difference = static_cast<int64_t>(more) - static_cast<int64_t>(fewer);
  account_.AddReserved(memory_.tier, difference);
  if (use_ == ShareUse::kCache) {
    account_.AddBytes(memory_.tier, difference);
    share().cached_bytes += more - fewer;
  }
  memory_.owned_bytes += more - fewer;
  UpdateShare(memory_, share(), [&] { share().bytes += more - fewer; });
}

void UpdateShare(TierMemory& memory, TenantShare& share,
                 absl::FunctionRef<void()> change) noexcept {
  CountActive(memory, share, -1);
  share.Leave(memory.OrderOf(share));
  change();
  share.Join(memory.OrderOf(share));
  CountActive(memory, share, +1);
}

ShareRoom RoomFor(TierMemory& memory, const ShareRequest& request) {
  const size_t reserved = memory.budget->reserved();
  ShareRoom room;
  room.free = Above(memory.budget->limit(), std::max(reserved, memory.owned_bytes));
  if (request.owner == nullptr) {
    room.evictable = memory.idle_bytes;
    return room;
  }
  Configure(memory, *request.owner);
  const TenantShare& own = request.owner->share();
  const Shares shares(memory, &own);
  const size_t share = shares.Of(own);
  const size_t above = Above(own.bytes, share) + Above(request.bytes, Above(share, own.bytes));
  if (above > 0 && request.owner->use() != ShareUse::kCopy) {
    const Time now = SteadyNow();
    for (const TenantShare* other : memory.recent) {
      const size_t kept = std::min(Above(shares.Of(*other), other->bytes),
                                   Above(other->kept_bytes, UncachedBytes(*other)));
      if (other == &own || kept == 0 || now >= other->kept_until) continue;
      room.kept += kept;
      room.kept_for =
          std::max<std::chrono::duration<double>>(room.kept_for, other->kept_until - now);
    }
  }
  room.evictable = std::min(own.idle_bytes, std::max(above, AboveQuota(request)));
  for (const TenantShare::Order* order : {&memory.equal_shares, &memory.configured_shares}) {
    for (auto next = order->rbegin(); next != order->rend(); ++next) {
      const TenantShare& other = **next;
      const size_t excess = shares.AboveShare(other);
      if (excess == 0 || room.Fits(request.bytes)) break;
      if (&other != &own) room.evictable += std::min(other.idle_bytes, excess);
    }
  }
  return room;
}

const TenantShare* NextVictim(TierMemory& memory, const ShareRequest& request) {
  const TenantShare* const own = request.owner == nullptr ? nullptr : &request.owner->share();
  const Shares shares(memory, own);
  const TenantShare* victim = nullptr;
  size_t most = 0;
  for (const TenantShare::Order* order : {&memory.equal_shares, &memory.configured_shares}) {
    auto next = order->rbegin();
    if (next != order->rend() && *next == own) ++next;
    if (next == order->rend()) continue;
    const size_t excess = shares.AboveShare(**next);
    // A request of no tenant also evicts from tenants within their shares.
    if (excess > most || (own == nullptr && victim == nullptr)) victim = *next;
    most = std::max(most, excess);
  }
  if (own == nullptr || own->idle.empty()) return victim;
  const size_t own_excess = Above(own->bytes + request.bytes, shares.Of(*own));
  const bool is_own_first = victim == nullptr ? own_excess > 0 : own_excess >= most;
  return is_own_first || AboveQuota(request) > 0 ? own : victim;
}

absl::Status CheckQuotas(const TierMemory& memory, const ShareRequest& request,
                         double retry_seconds) {
  if (request.owner == nullptr) return absl::OkStatus();
  const ShareOwner& owner = *request.owner;
  const std::string& tenant = owner.account().tenant();
  const auto refuse = [&](absl::string_view quota, int64_t limit, size_t used, bool jobs_end,
                          absl::string_view where) {
    const bool helps = jobs_end && request.bytes <= static_cast<size_t>(limit);
    return QuotaExceeded(
        tenant, quota,
        absl::StrCat("the job needs ", request.bytes, " bytes, and ", used, " bytes ", where),
        absl::StrCat(limit),
        helps ? "Try again later"
              : "Release or unpin factors, send a smaller matrix, or ask the operator to raise the "
                "quota",
        helps ? std::optional(retry_seconds) : std::nullopt);
  };
  const TenantShare& own = owner.share();
  if (const size_t above = AboveQuota(request); above > own.idle_bytes) {
    const auto [quota, limit] = owner.memory_quota();
    // The bytes of jobs become free when the jobs end.
    return refuse(quota, limit, own.bytes, above <= own.idle_bytes + UncachedBytes(own),
                  memory.tier == Tier::kDevice ? "of the device's memory are in use"
                  : memory.tier == Tier::kHost ? "of host memory are in use"
                                               : "of the store are in use");
  }
  if (IsAboveBytesInFlight(request)) {
    return refuse("bytes_in_flight", owner.limits().bytes_in_flight,
                  owner.account().bytes_in_flight(), /*jobs_end=*/true,
                  "are held by other jobs of the tenant");
  }
  return absl::OkStatus();
}

void KeepFor(TierMemory& memory, const ShareRequest& request,
             std::chrono::duration<double> retry_after) noexcept {
  if (request.owner == nullptr || request.bytes > memory.budget->limit()) return;
  const auto kept_for =
      kKeptFor + std::chrono::duration_cast<std::chrono::nanoseconds>(
                     std::min<std::chrono::duration<double>>(retry_after, kLongestRetry));
  Keep(memory, *request.owner, UncachedBytes(request.owner->share()) + request.bytes,
       SteadyNow() + kept_for);
}

std::shared_ptr<ReservationOwner> EndKeptMemory(TierMemory& memory, bool all) noexcept {
  const Time now = SteadyNow();
  for (TenantShare* const share : memory.recent) {
    if (!all && now < share->kept_until) continue;
    UpdateShare(memory, *share, [&] { share->recent.Unlink(memory.recent); });
    share->kept_bytes = 0;
    return std::move(share->keeper);
  }
  return nullptr;
}

}  // namespace crout
