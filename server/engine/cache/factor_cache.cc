// SPDX-License-Identifier: Apache-2.0

#include "server/engine/cache/factor_cache.h"

#include <algorithm>

#include "kernels/util/clock.h"
#include "kernels/util/status_macros.h"
#include "server/engine/cache/cached_version.h"
#include "server/engine/reason.h"

namespace crout {
namespace {

// A guess: the duration of the other call's upload is unknown.
constexpr double kClaimRetrySeconds = 0.5;

}  // namespace

FactorCache::FactorCache(DevicePool* pool, MemoryResource* host_memory, CacheEvents* events,
                         TenantLoads* loads)
    : pool_(pool),
      host_memory_(host_memory),
      events_(events),
      loads_(loads),
      pressure_(new Mutex[pool->slots().size() + 1]),
      shelves_(pool->slots().size() + 1) {}

FactorCache::~FactorCache() = default;

FactorInfo FactorCache::Insert(NewFactor factor, const InsertOptions& options) {
  auto entry = std::make_unique<Entry>(options, loads_->Open(options.tenant), WallNow());
  auto stored = MakeVersion(std::move(factor));
  FactorInfo info = Info(*entry, *stored, entry->create_time);
  RequestIds::Place request(entry->tenant, entry->request_id);
  RequestIds::Settled settled;  // destroyed after the lock
  MutexLock lock(&mutex_);
  Entry& added = handles_.Insert(std::move(entry));
  // Nothing can fail from here on.
  settled = request_ids_.Complete(std::move(request), added.handle);
  Attach(added, std::move(stored));
  Settle(*added.stored);
  return info;
}

absl::StatusOr<std::optional<FactorInfo>> FactorCache::ClaimRequest(std::string_view tenant,
                                                                    std::string_view request_id) {
  while (true) {
    const RequestIds::Found found = request_ids_.Claim(tenant, request_id);
    if (found.before == RequestIds::State::kFree) return std::optional<FactorInfo>();
    if (found.before == RequestIds::State::kClaimed) {
      return WithRetryAfter(
          WithReason(absl::AbortedError("another call with this request_id is in progress"),
                     kReasonRequestInProgress),
          kClaimRetrySeconds);
    }
    const absl::StatusOr<FactorInfo> living = Describe(tenant, *found.factor);
    if (living.ok()) return std::optional<FactorInfo>(*living);
    // The factor is gone, but its entry may not be removed yet.
    if (request_ids_.Reclaim(tenant, request_id, *found.factor)) return std::optional<FactorInfo>();
  }
}

absl::StatusOr<FactorInfo> FactorCache::Replace(std::string_view tenant, const Handle& handle,
                                                NewFactor factor) {
  const absl::Time now = WallNow();
  std::shared_ptr<CachedVersion> next = MakeVersion(std::move(factor));
  Charged freed;
  MutexLock lock(&mutex_);
  CacheMiss miss;
  auto found = Find(tenant, handle, now, &miss);
  if (!found.ok()) {
    freed = Settle(*next);
    return found.status();
  }
  Entry& entry = **found;
  next->version = entry.stored->version + 1;
  FactorInfo info = Info(entry, *next, now);
  // Nothing can fail from here on.
  const std::shared_ptr<CachedVersion> last = Detach(entry);
  events_->OnEviction(TierOf(*last), CacheEviction::kReplaced);
  Attach(entry, std::move(next));
  Settle(*entry.stored);
  freed = Settle(*last);
  return info;
}

absl::StatusOr<FactorCache::Pin> FactorCache::Acquire(std::string_view tenant,
                                                      const Handle& handle) {
  const absl::Time now = WallNow();
  MutexLock lock(&mutex_);
  CacheMiss miss;
  auto entry = Find(tenant, handle, now, &miss);
  if (!entry.ok()) {
    events_->OnMiss(miss);
    return entry.status();
  }
  CachedVersion& stored = *(*entry)->stored;
  Rehome(stored);
  Unlist(stored);
  events_->OnHit(TierOf(stored));
  ++stored.pins;
  handles_.Reschedule(**entry, [&] { ++(*entry)->uses; });
  stored.wanted = true;
  return Pin(this, (*entry)->stored);
}

absl::StatusOr<FactorInfo> FactorCache::Describe(std::string_view tenant,
                                                 const Handle& handle) const {
  const absl::Time now = WallNow();
  MutexLock lock(&mutex_);
  CacheMiss miss;
  CROUT_ASSIGN_OR_RETURN(const Entry* entry, Find(tenant, handle, now, &miss));
  return Info(*entry, *entry->stored, now);
}

absl::StatusOr<FactorInfo> FactorCache::Renew(std::string_view tenant, const Handle& handle,
                                              absl::Duration lease, Renewal renewal) {
  const absl::Time now = WallNow();
  MutexLock lock(&mutex_);
  CacheMiss miss;
  CROUT_ASSIGN_OR_RETURN(Entry * entry, Find(tenant, handle, now, &miss));
  FactorInfo info = Info(*entry, *entry->stored, now);
  handles_.Reschedule(*entry, [&] {
    const bool lengthen = renewal == Renewal::kLengthen;
    entry->lease = lengthen ? std::max(lease, entry->lease) : lease;
    const absl::Time end = std::min(now + lease, entry->life_end);
    entry->lease_expire_time = lengthen ? std::max(end, entry->lease_expire_time) : end;
  });
  info.lease_expire_time = entry->LeaseEnd(now);
  return info;
}

absl::Status FactorCache::Release(std::string_view tenant, const Handle& handle) {
  const absl::Time now = WallNow();
  Charged freed;
  MutexLock lock(&mutex_);
  CacheMiss miss;
  CROUT_RETURN_IF_ERROR(Find(tenant, handle, now, &miss).status());
  freed = Settle(*Remove(handle, Removal::kReleased));
  return absl::OkStatus();
}

absl::StatusOr<DeviceSlot*> FactorCache::SlotOf(std::string_view tenant,
                                                const Handle& handle) const {
  const absl::Time now = WallNow();
  MutexLock lock(&mutex_);
  CacheMiss miss;
  CROUT_ASSIGN_OR_RETURN(const Entry* entry, Find(tenant, handle, now, &miss));
  return entry->stored->slot;
}

std::vector<FactorInfo> FactorCache::List(std::string_view tenant, std::string_view name,
                                          int64_t before, size_t limit, int64_t* next) const {
  const absl::Time now = WallNow();
  std::vector<FactorInfo> infos;
  infos.reserve(limit);
  MutexLock lock(&mutex_);
  for (const Entry* entry : handles_.List(tenant, name, before, limit, next)) {
    if (now >= entry->end() || IsLost(*entry->stored)) continue;  // not removed yet
    infos.push_back(Info(*entry, *entry->stored, now));
  }
  return infos;
}

void FactorCache::SweepFor(const DeviceSlot* slot) {
  const absl::Time now = WallNow();
  while (true) {
    std::vector<Charged> freed = SweepSome(now);
    if (freed.empty()) break;
    Free(std::move(freed), slot);
  }
  Free(SweepLostDevices(), slot);
}

std::vector<FactorCache::Charged> FactorCache::SweepSome(absl::Time now) {
  constexpr size_t kBatch = 256;  // limits the time for which calls wait for the mutex
  std::vector<Charged> freed;
  freed.reserve(kBatch);
  MutexLock lock(&mutex_);
  while (freed.size() < kBatch) {
    const Entry* const ended = handles_.FirstEnded(now);
    if (ended == nullptr) break;
    freed.push_back(Settle(*Remove(ended->handle, Removal::kExpired)));
  }
  return freed;
}

std::vector<FactorCache::Charged> FactorCache::SweepLostDevices() {
  std::vector<Charged> freed;
  for (const auto& slot : pool_->slots()) {
    if (slot->on_host() || slot->device->healthy()) continue;
    MutexLock lock(&mutex_);
    const auto& lost = shelves_[ShelfOf(*slot)].stored;
    freed.reserve(freed.size() + lost.size());
    while (!lost.empty()) {
      freed.push_back(Settle(*Remove(lost.front()->handle, Removal::kDeviceLost)));
    }
  }
  return freed;
}

void FactorCache::Free(std::vector<Charged> freed, const DeviceSlot* slot) {
  for (Charged& charged : freed) {
    DeviceSlot* const other = charged.slot;
    if (other == nullptr || other == slot) {
      const Charged here = std::move(charged);
    } else {
      other->releasing->Schedule([there = std::move(charged)] {});
    }
  }
}

std::array<TierState, 2> FactorCache::tiers() const {
  std::array<TierState, 2> tiers;
  MutexLock lock(&mutex_);
  for (size_t i = 0; i < shelves_.size(); ++i) {
    const Tier tier = i == kHostShelf ? Tier::kHost : Tier::kDevice;
    TierState& state = tiers[static_cast<size_t>(tier)];
    state.entries += static_cast<int64_t>(shelves_[i].stored.size());
    state.bytes += static_cast<int64_t>(shelves_[i].bytes);
  }
  return tiers;
}

size_t FactorCache::size() const {
  MutexLock lock(&mutex_);
  return handles_.size();
}

}  // namespace crout
