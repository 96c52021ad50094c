// SPDX-License-Identifier: Apache-2.0

#include "server/engine/cache/factor_cache.h"

#include <algorithm>
#include <limits>

#include "kernels/util/clock.h"
#include "kernels/util/status_macros.h"
#include "server/engine/cache/factor_cache_entry.h"
#include "server/engine/reason.h"

namespace crout {
namespace {

constexpr double kClaimRetrySeconds = 0.5;  // The other call's upload is the unknown here.

}  // namespace

FactorCache::FactorCache(DevicePool* pool, MemoryResource* host_memory, Metrics* metrics,
                         TenantLoads* loads)
    : pool_(pool),
      host_memory_(host_memory),
      metrics_(metrics),
      loads_(loads),
      pressure_(new Mutex[pool->slots().size() + 1]),
      shelves_(pool->slots().size() + 1) {}

FactorCache::~FactorCache() = default;

FactorInfo FactorCache::Insert(NewFactor factor, const InsertOptions& options) {
  auto entry = std::make_unique<Entry>(options, loads_->Open(options.tenant));
  entry->create_time = WallNow();
  entry->life_end = entry->create_time + options.life;
  entry->lease = options.lease;
  entry->lease_expire_time = std::min(entry->create_time + options.lease, entry->life_end);
  auto stored = MakeStored(std::move(factor));

  FactorInfo info = Info(*entry, *stored, entry->create_time);
  // What the indexes are to hold, made before the first of them changes.
  Requests requests;
  if (!entry->request_id.empty()) requests[RequestKey(entry->tenant, entry->request_id)];
  std::set<std::pair<absl::Time, Entry*>> by_end = {{EndOf(*entry), entry.get()}};
  std::map<ListKey, Entry*> listed;
  Waiters waiters;
  {
    MutexLock lock(&mutex_);
    entry->sequence = ++last_sequence_;
    if (options.listed) {
      listed.emplace(ListKey(entry->tenant, "", entry->sequence), entry.get());
      listed.emplace(ListKey(entry->tenant, entry->name, entry->sequence), entry.get());
    }
    Entry& added = *entries_.emplace(info.handle, std::move(entry)).first->second;
    // From here on nothing can fail.
    listed_.merge(listed);
    by_end_.merge(by_end);
    requests_.merge(requests);  // unless it was claimed
    if (!added.request_id.empty()) {
      Request& request = requests_.find(RequestView(added.tenant, added.request_id))->second;
      request.factor = added.handle;
      waiters.swap(request.waiters);
    }
    if (added.listed) added.account.AddFactors(1);
    Attach(added, std::move(stored));
    Settle(*added.stored);
  }
  Notify(waiters);
  return info;
}

absl::StatusOr<std::optional<FactorInfo>> FactorCache::ClaimRequest(std::string_view tenant,
                                                                    std::string_view request_id) {
  const absl::Time now = WallNow();
  MutexLock lock(&mutex_);
  auto [request, claimed] = requests_.try_emplace(RequestKey(tenant, request_id));
  if (claimed) return std::optional<FactorInfo>();
  if (!request->second.factor.has_value()) {
    return WithRetryAfter(
        WithReason(absl::AbortedError("another call with this request_id is in progress"),
                   kReasonRequestInProgress),
        kClaimRetrySeconds);
  }
  CacheMiss miss;
  auto entry = Find(tenant, *request->second.factor, now, &miss);
  if (entry.ok()) return Info(**entry, *(*entry)->stored, now);
  request->second.factor.reset();  // It is over, only not swept yet.
  return std::optional<FactorInfo>();
}

void FactorCache::AbandonRequest(std::string_view tenant, std::string_view request_id) noexcept {
  Waiters waiters;
  {
    MutexLock lock(&mutex_);
    const auto request = requests_.find(RequestView(tenant, request_id));
    if (request == requests_.end() || request->second.factor.has_value()) return;
    waiters.swap(request->second.waiters);
    requests_.erase(request);
  }
  Notify(waiters);
}

bool FactorCache::AwaitRequest(std::string_view tenant, std::string_view request_id,
                               const std::shared_ptr<RequestWaiter>& waiter) {
  MutexLock lock(&mutex_);
  const auto request = requests_.find(RequestView(tenant, request_id));
  if (request == requests_.end() || request->second.factor.has_value()) return false;
  request->second.waiters.emplace(waiter.get(), waiter);
  return true;
}

void FactorCache::StopAwaiting(std::string_view tenant, std::string_view request_id,
                               const RequestWaiter* waiter) noexcept {
  MutexLock lock(&mutex_);
  const auto request = requests_.find(RequestView(tenant, request_id));
  if (request != requests_.end()) request->second.waiters.erase(waiter);
}

bool FactorCache::IsAwaited(std::string_view tenant, std::string_view request_id) const {
  MutexLock lock(&mutex_);
  const auto request = requests_.find(RequestView(tenant, request_id));
  return request != requests_.end() && !request->second.waiters.empty();
}

void FactorCache::Notify(const Waiters& waiters) noexcept {
  for (const auto& [key, weak] : waiters) {
    if (const auto waiter = weak.lock()) waiter->OnRequestSettled();
  }
}

absl::StatusOr<FactorInfo> FactorCache::Replace(std::string_view tenant, const Handle& handle,
                                                NewFactor factor) {
  const absl::Time now = WallNow();
  std::shared_ptr<Stored> next = MakeStored(std::move(factor));
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
  // From here on nothing can fail.
  const std::shared_ptr<Stored> last = Detach(entry);
  metrics_->CountCacheEviction(TierOf(*last), CacheEviction::kReplaced);
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
    metrics_->CountCacheMiss(miss);
    return entry.status();
  }
  Stored& stored = *(*entry)->stored;
  Rehome(stored);
  Unlist(stored);
  metrics_->CountCacheHit(TierOf(stored));
  ++stored.pins;
  Reschedule(**entry, [&] { ++(*entry)->uses; });
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
  Reschedule(*entry, [&] {
    const bool lengthen = renewal == Renewal::kLengthen;
    entry->lease = lengthen ? std::max(lease, entry->lease) : lease;
    const absl::Time end = std::min(now + lease, entry->life_end);
    entry->lease_expire_time = lengthen ? std::max(end, entry->lease_expire_time) : end;
  });
  info.lease_expire_time = LeaseEndOf(*entry, now);
  return info;
}

absl::Status FactorCache::Release(std::string_view tenant, const Handle& handle) {
  const absl::Time now = WallNow();
  Charged freed;
  MutexLock lock(&mutex_);
  CacheMiss miss;
  CROUT_RETURN_IF_ERROR(Find(tenant, handle, now, &miss).status());
  freed = Settle(*Remove(handle, Departure::kReleased));
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
  const int64_t end = before > 0 ? before : std::numeric_limits<int64_t>::max();
  *next = 0;
  std::vector<FactorInfo> infos;
  infos.reserve(limit);
  MutexLock lock(&mutex_);
  size_t visited = 0;
  int64_t last = 0;
  auto it = listed_.lower_bound(ListKey(tenant, name, end));
  while (it != listed_.begin()) {
    const auto& [key, entry] = *--it;
    if (std::get<0>(key) != tenant || std::get<1>(key) != name) break;
    if (visited++ == limit) {
      *next = last;
      break;
    }
    last = entry->sequence;
    if (!DueDeparture(*entry, now)) infos.push_back(Info(*entry, *entry->stored, now));
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
  constexpr size_t kBatch = 256;  // so that calls come in between
  std::vector<Charged> freed;
  freed.reserve(kBatch);
  MutexLock lock(&mutex_);
  while (!by_end_.empty() && by_end_.begin()->first <= now && freed.size() < kBatch) {
    freed.push_back(Settle(*Remove(by_end_.begin()->second->handle, Departure::kExpired)));
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
      freed.push_back(Settle(*Remove(lost.front()->handle, Departure::kDeviceLost)));
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
  return entries_.size();
}

}  // namespace crout
