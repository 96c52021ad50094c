#include "server/cache/factor_cache.h"

#include <limits>

#include "kernels/util/status_macros.h"
#include "server/cache/factor_cache_entry.h"
#include "server/scheduling/reason.h"

namespace crout {
namespace {

constexpr double kClaimRetrySeconds = 0.5;  // The other call's upload is the unknown here.

}  // namespace

FactorCache::FactorCache(DevicePool* pool, MemoryResource* host_memory, Metrics* metrics,
                         absl::Time (*now)())
    : pool_(pool),
      host_memory_(host_memory),
      metrics_(metrics),
      now_(now),
      pressure_(new Mutex[pool->slots().size() + 1]),
      idle_(pool->slots().size() + 1) {}

FactorCache::~FactorCache() = default;

FactorInfo FactorCache::Insert(NewFactor factor, const InsertOptions& options) {
  auto entry = std::make_unique<Entry>();
  entry->handle = Handle::Random();
  entry->tenant = options.tenant;
  entry->name = options.name;
  entry->request_id = options.request_id;
  entry->create_time = now_();
  entry->lease_expire_time = entry->create_time + options.lease;
  entry->stored = MakeStored(std::move(factor));
  entry->stored->entry = entry.get();

  MutexLock lock(&mutex_);
  entry->sequence = ++last_sequence_;
  by_sequence_.emplace(std::pair(entry->tenant, entry->sequence), entry.get());
  if (!entry->request_id.empty()) {
    requests_[RequestKey(entry->tenant, entry->request_id)] = entry->handle;
  }
  Settle(*entry->stored);
  FactorInfo info = Info(*entry);
  entries_.emplace(info.handle, std::move(entry));
  return info;
}

absl::StatusOr<std::optional<FactorInfo>> FactorCache::ClaimRequest(std::string_view tenant,
                                                                    std::string_view request_id) {
  const absl::Time now = now_();
  MutexLock lock(&mutex_);
  auto [request, claimed] =
      requests_.try_emplace(RequestKey(tenant, request_id), std::optional<Handle>());
  if (claimed) return std::optional<FactorInfo>();
  if (!request->second.has_value()) {
    return WithRetryAfter(
        WithReason(absl::AbortedError("another call with this request_id is under way"),
                   kReasonRequestInProgress),
        kClaimRetrySeconds);
  }
  CacheMiss miss;
  auto entry = Find(tenant, *request->second, now, &miss);
  if (entry.ok()) return Info(**entry);
  request->second.reset();  // It is over, only not swept yet.
  return std::optional<FactorInfo>();
}

void FactorCache::AbandonRequest(std::string_view tenant, std::string_view request_id) {
  MutexLock lock(&mutex_);
  const auto request = requests_.find(RequestKey(tenant, request_id));
  if (request != requests_.end() && !request->second.has_value()) requests_.erase(request);
}

absl::StatusOr<FactorInfo> FactorCache::Replace(std::string_view tenant, const Handle& handle,
                                                NewFactor factor) {
  const absl::Time now = now_();
  const std::shared_ptr<Stored> next = MakeStored(std::move(factor));
  Charged freed;
  MutexLock lock(&mutex_);
  CacheMiss miss;
  auto found = Find(tenant, handle, now, &miss);
  if (!found.ok()) {
    freed = Settle(*next);
    return found.status();
  }
  Entry& entry = **found;
  const std::shared_ptr<Stored> last = std::exchange(entry.stored, next);
  metrics_->CountCacheEviction(TierOf(*last), CacheEviction::kReplaced);
  next->version = last->version + 1;
  next->entry = &entry;
  Settle(*next);
  last->entry = nullptr;
  freed = Settle(*last);
  return Info(entry);
}

absl::StatusOr<FactorCache::Pin> FactorCache::Acquire(std::string_view tenant,
                                                      const Handle& handle) {
  const absl::Time now = now_();
  MutexLock lock(&mutex_);
  CacheMiss miss;
  auto entry = Find(tenant, handle, now, &miss);
  if (!entry.ok()) {
    metrics_->CountCacheMiss(miss);
    return entry.status();
  }
  Stored& stored = *(*entry)->stored;
  Unlist(stored);
  Rehome(stored);
  metrics_->CountCacheHit(TierOf(stored));
  ++stored.pins;
  stored.wanted = true;
  return Pin(this, (*entry)->stored);
}

absl::StatusOr<FactorInfo> FactorCache::Describe(std::string_view tenant,
                                                 const Handle& handle) const {
  const absl::Time now = now_();
  MutexLock lock(&mutex_);
  CacheMiss miss;
  CROUT_ASSIGN_OR_RETURN(const Entry* entry, Find(tenant, handle, now, &miss));
  return Info(*entry);
}

absl::StatusOr<FactorInfo> FactorCache::Renew(std::string_view tenant, const Handle& handle,
                                              absl::Duration lease) {
  const absl::Time now = now_();
  MutexLock lock(&mutex_);
  CacheMiss miss;
  CROUT_ASSIGN_OR_RETURN(Entry * entry, Find(tenant, handle, now, &miss));
  entry->lease_expire_time = now + lease;
  return Info(*entry);
}

absl::Status FactorCache::Release(std::string_view tenant, const Handle& handle) {
  const absl::Time now = now_();
  Charged freed;
  MutexLock lock(&mutex_);
  CacheMiss miss;
  CROUT_RETURN_IF_ERROR(Find(tenant, handle, now, &miss).status());
  freed = Settle(*Remove(handle, Departure::kReleased));
  return absl::OkStatus();
}

std::vector<FactorInfo> FactorCache::List(std::string_view tenant, std::string_view name,
                                          int64_t before, size_t limit, int64_t* next) const {
  const absl::Time now = now_();
  const int64_t end = before > 0 ? before : std::numeric_limits<int64_t>::max();
  *next = 0;
  std::vector<FactorInfo> infos;
  MutexLock lock(&mutex_);
  int64_t last = 0;
  auto it = by_sequence_.lower_bound(std::pair(std::string(tenant), end));
  while (it != by_sequence_.begin() && (--it)->first.first == tenant) {
    const Entry& entry = *it->second;
    CacheMiss miss;
    if (!name.empty() && entry.name != name) continue;
    if (!Find(tenant, entry.handle, now, &miss).ok()) continue;
    if (infos.size() == limit) {
      *next = last;
      break;
    }
    last = entry.sequence;
    infos.push_back(Info(entry));
  }
  return infos;
}

void FactorCache::Sweep() {
  const absl::Time now = now_();
  std::vector<Charged> freed;
  MutexLock lock(&mutex_);
  std::vector<std::pair<Handle, Departure>> over;
  for (const auto& [handle, entry] : entries_) {
    if (const auto departure = DueDeparture(*entry, now)) over.emplace_back(handle, *departure);
  }
  for (const auto& [handle, departure] : over) freed.push_back(Settle(*Remove(handle, departure)));
}

std::array<TierState, 2> FactorCache::tiers() const {
  std::array<TierState, 2> tiers;
  MutexLock lock(&mutex_);
  for (const auto& [handle, entry] : entries_) {
    TierState& tier = tiers[static_cast<size_t>(TierOf(*entry->stored))];
    ++tier.entries;
    tier.bytes += static_cast<int64_t>(entry->stored->bytes);
  }
  return tiers;
}

size_t FactorCache::size() const {
  MutexLock lock(&mutex_);
  return entries_.size();
}

}  // namespace crout
