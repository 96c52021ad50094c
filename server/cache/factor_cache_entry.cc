#include "server/cache/factor_cache_entry.h"

#include <algorithm>
#include <utility>

namespace crout {

CacheTier FactorCache::TierOf(const Stored& stored) {
  return ListOf(stored) == kHostList ? CacheTier::kHost : CacheTier::kDevice;
}

size_t FactorCache::ListOf(const Stored& stored) {
  const bool on_device = stored.resident && !stored.slot->on_host();
  return on_device ? static_cast<size_t>(stored.slot->index) + 1 : kHostList;
}

std::shared_ptr<FactorCache::Stored> FactorCache::MakeStored(NewFactor factor) {
  auto stored = std::make_shared<Stored>();
  stored->nnz = factor.nnz;
  stored->timings = factor.timings;
  // A 0 x 0 matrix has no bytes to keep, and nothing that they could tell.
  stored->has_matrix = factor.factorization.storage.matrix || factor.factorization.summary.n == 0;
  stored->bytes = std::max(factor.factorization.storage.bytes(), kSmallestCharge);
  stored->slot = factor.slot;
  stored->reservation = std::move(factor.reservation);
  stored->reservation.Shrink(stored->bytes);
  stored->factorization = std::move(factor.factorization);
  if (auto& iterations = stored->factorization.summary.iterations) {
    // Told once, by the call that factored: it can be as large as a factor, and is not charged.
    iterations->sweeps = {};
    iterations->pivots = {};
  }
  return stored;
}

absl::StatusOr<FactorCache::Entry*> FactorCache::Find(std::string_view tenant, const Handle& handle,
                                                      absl::Time now, CacheMiss* miss) const {
  const auto found = entries_.find(handle);
  Entry* const entry = found == entries_.end() ? nullptr : found->second.get();
  const Tombstones::Tombstone* const tombstone = tombstones_.Find(handle);
  if (entry == nullptr && tombstone == nullptr) {
    *miss = CacheMiss::kUnknown;
    return UnknownHandleStatus();
  }
  if ((entry != nullptr ? entry->tenant : tombstone->tenant) != tenant) {
    *miss = CacheMiss::kOtherTenant;
    return UnknownHandleStatus();
  }
  const auto departure = entry != nullptr ? DueDeparture(*entry, now) : tombstone->departure;
  if (!departure.has_value()) return entry;
  *miss = MissOf(*departure);
  return GoneStatus(*departure);
}

std::optional<Departure> FactorCache::DueDeparture(const Entry& entry, absl::Time now) {
  if (now >= entry.lease_expire_time) return Departure::kExpired;
  const Stored& stored = *entry.stored;
  if (TierOf(stored) == CacheTier::kDevice && !stored.slot->device->healthy()) {
    return Departure::kDeviceLost;
  }
  return std::nullopt;
}

FactorInfo FactorCache::Info(const Entry& entry) const {
  const Stored& stored = *entry.stored;
  return {.handle = entry.handle,
          .tenant = entry.tenant,
          .name = entry.name,
          .version = stored.version,
          .summary = stored.factorization.summary,
          .device = stored.slot->device->info().name,
          .nnz = stored.nnz,
          .has_matrix = stored.has_matrix,
          .tier = TierOf(stored),
          .bytes = stored.bytes,
          .create_time = entry.create_time,
          .lease_expire_time = entry.lease_expire_time,
          .timings = stored.timings};
}

std::shared_ptr<FactorCache::Stored> FactorCache::Remove(const Handle& handle,
                                                         Departure departure) {
  auto node = entries_.extract(handle);
  Entry& entry = *node.mapped();
  metrics_->CountCacheEviction(TierOf(*entry.stored), EvictionOf(departure));
  tombstones_.Add(handle, entry.tenant, departure);
  by_sequence_.erase({entry.tenant, entry.sequence});
  // The request may belong to a later factor by now.
  const auto request = requests_.find(RequestKey(entry.tenant, entry.request_id));
  if (request != requests_.end() && request->second == handle) requests_.erase(request);
  entry.stored->entry = nullptr;
  return std::move(entry.stored);
}

FactorCache::Charged FactorCache::Settle(Stored& stored) {
  Unlist(stored);
  if (stored.pins > 0 || stored.moving) return {};
  if (stored.entry == nullptr) {
    return {.reservation = std::move(stored.reservation),
            .storage = std::move(stored.factorization.storage)};
  }
  IdleList& list = idle_[ListOf(stored)];
  stored.position = list.order.insert(list.order.end(), &stored);
  stored.listed = true;
  list.bytes += stored.bytes;
  return {};
}

void FactorCache::Unlist(Stored& stored) {
  if (!std::exchange(stored.listed, false)) return;
  IdleList& list = idle_[ListOf(stored)];
  list.order.erase(stored.position);
  list.bytes -= stored.bytes;
}

void FactorCache::Rehome(Stored& stored) {
  if (stored.resident || stored.pins > 0 || stored.slot->device->healthy()) return;
  // With no healthy device left it stays, and the call fails when it wants to run.
  if (auto slot = pool_->Choose(""); slot.ok()) stored.slot = *slot;
}

FactorCache::Pin::Pin(FactorCache* cache, std::shared_ptr<Stored> stored)
    : cache_(cache), stored_(std::move(stored)) {}

FactorCache::Pin::Pin(Pin&& other) noexcept = default;

FactorCache::Pin& FactorCache::Pin::operator=(Pin&& other) noexcept {
  if (this != &other) {
    if (stored_ != nullptr) cache_->Unpin(std::move(stored_));
    cache_ = other.cache_;
    stored_ = std::move(other.stored_);
  }
  return *this;
}

FactorCache::Pin::~Pin() {
  if (stored_ != nullptr) cache_->Unpin(std::move(stored_));
}

const FactorSummary& FactorCache::Pin::summary() const { return stored_->factorization.summary; }
int64_t FactorCache::Pin::version() const { return stored_->version; }
DeviceSlot& FactorCache::Pin::slot() const { return *stored_->slot; }
std::optional<int64_t> FactorCache::Pin::nnz() const { return stored_->nnz; }

size_t FactorCache::Pin::promotion_bytes() const {
  return cache_->IsResident(*stored_) ? 0 : stored_->bytes;
}

absl::StatusOr<const Factorization*> FactorCache::Pin::OnDevice(ExecutionContext& context,
                                                                Reservation room, bool* promoted) {
  return cache_->MakeResident(*stored_, context, std::move(room), promoted);
}

void FactorCache::Unpin(std::shared_ptr<Stored> stored) {
  Charged freed;
  MutexLock lock(&mutex_);
  --stored->pins;
  freed = Settle(*stored);
}

}  // namespace crout
