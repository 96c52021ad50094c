// SPDX-License-Identifier: Apache-2.0

#include "server/engine/cache/factor_cache_entry.h"

#include <algorithm>
#include <utility>

#include "kernels/util/clock.h"
#include "kernels/util/status_macros.h"

namespace crout {

Tier FactorCache::TierOf(const Stored& stored) {
  return ShelfOf(stored) == kHostShelf ? Tier::kHost : Tier::kDevice;
}

size_t FactorCache::ShelfOf(const Stored& stored) {
  return stored.resident ? ShelfOf(*stored.slot) : kHostShelf;
}

size_t FactorCache::ShelfOf(const DeviceSlot& slot) {
  return slot.on_host() ? kHostShelf : static_cast<size_t>(slot.index) + 1;
}

std::shared_ptr<FactorCache::Stored> FactorCache::MakeStored(NewFactor factor) {
  auto stored = std::make_shared<Stored>();
  stored->nnz = factor.nnz;
  stored->timings = factor.timings;
  // A 0 x 0 matrix has no bytes to keep, and nothing that they could tell.
  stored->has_matrix = factor.factorization.has_matrix() || factor.factorization.summary.n == 0;
  stored->bytes = Charge(factor.factorization.parts.bytes());
  stored->slot = factor.slot;
  stored->reservation = std::move(factor.reservation);
  stored->reservation.Shrink(stored->bytes);
  stored->factorization = std::move(factor.factorization);
  stored->record = std::move(factor.record);
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
  if (now >= EndOf(entry)) return Departure::kExpired;
  const Stored& stored = *entry.stored;
  if (TierOf(stored) == Tier::kDevice && !stored.slot->device->healthy()) {
    return Departure::kDeviceLost;
  }
  return std::nullopt;
}

absl::Time FactorCache::LeaseFrom(const Entry& entry, absl::Time now) {
  // The later one: the wall clock can be set back.
  return std::min(std::max(now + entry.lease, entry.lease_expire_time), entry.life_end);
}

absl::Time FactorCache::EndOf(const Entry& entry) {
  return entry.uses > 0 ? entry.life_end : entry.lease_expire_time;
}

absl::Time FactorCache::LeaseEndOf(const Entry& entry, absl::Time now) {
  return entry.uses > 0 ? LeaseFrom(entry, now) : entry.lease_expire_time;
}

void FactorCache::Reschedule(Entry& entry, absl::FunctionRef<void()> change) noexcept {
  auto node = by_end_.extract({EndOf(entry), &entry});
  change();
  node.value().first = EndOf(entry);
  by_end_.insert(std::move(node));
}

FactorInfo FactorCache::Info(const Entry& entry, const Stored& stored, absl::Time now) {
  return {.handle = entry.handle,
          .tenant = entry.tenant,
          .name = entry.name,
          .version = stored.version,
          .summary = stored.factorization.summary,
          .record = stored.record,
          .device = stored.slot->device->info().name,
          .nnz = stored.nnz,
          .has_matrix = stored.has_matrix,
          .tier = TierOf(stored),
          .bytes = stored.bytes,
          .create_time = entry.create_time,
          .lease_expire_time = LeaseEndOf(entry, now),
          .timings = stored.timings};
}

std::shared_ptr<FactorCache::Stored> FactorCache::Remove(const Handle& handle,
                                                         Departure departure) noexcept {
  auto node = entries_.extract(handle);
  Entry& entry = *node.mapped();
  metrics_->CountCacheEviction(TierOf(*entry.stored), EvictionOf(departure));
  tombstones_.Add(std::move(entry.tombstone), departure);
  by_end_.erase({EndOf(entry), &entry});
  listed_.erase(ListKey(entry.tenant, "", entry.sequence));
  listed_.erase(ListKey(entry.tenant, entry.name, entry.sequence));
  // The request may belong to a later factor by now.
  const auto request = requests_.find(RequestView(entry.tenant, entry.request_id));
  if (request != requests_.end() && request->second.factor == entry.handle) {
    requests_.erase(request);
  }
  if (entry.listed) entry.account.AddFactors(-1);
  return Detach(entry);
}

void FactorCache::Attach(Entry& entry, std::shared_ptr<Stored> stored) noexcept {
  stored->handle = entry.handle;
  stored->entry = &entry;
  Shelve(*stored);
  ListRecord(*stored);
  entry.stored = std::move(stored);
}

std::shared_ptr<FactorCache::Stored> FactorCache::Detach(Entry& entry) noexcept {
  Unshelve(*entry.stored);
  entry.stored->entry = nullptr;
  return std::move(entry.stored);
}

void FactorCache::Move(Stored& stored, absl::FunctionRef<void()> change) noexcept {
  if (stored.entry != nullptr) Unshelve(stored);
  change();
  if (stored.entry != nullptr) Shelve(stored);
}

void FactorCache::Shelve(Stored& stored) noexcept {
  Shelf& shelf = shelves_[ShelfOf(stored)];
  stored.shelved.Take(shelf.stored);
  shelf.bytes += stored.bytes;
  stored.entry->account.AddBytes(TierOf(stored), static_cast<int64_t>(stored.bytes));
}

void FactorCache::Unshelve(Stored& stored) noexcept {
  Unlist(stored);
  Shelf& shelf = shelves_[ShelfOf(stored)];
  stored.shelved.Leave(shelf.stored);
  shelf.bytes -= stored.bytes;
  stored.entry->account.AddBytes(TierOf(stored), -static_cast<int64_t>(stored.bytes));
}

FactorCache::Charged FactorCache::Settle(Stored& stored) noexcept {
  Unlist(stored);
  if (stored.pins > 0 || stored.moving) return {};
  if (stored.entry == nullptr) {
    const bool on_host = ShelfOf(stored) == kHostShelf;
    return {.slot = on_host ? nullptr : stored.slot,
            .reservation = std::move(stored.reservation),
            .parts = std::move(stored.factorization.parts),
            .record = TakeRecordOf(stored)};
  }
  Shelf& shelf = shelves_[ShelfOf(stored)];
  stored.idle.Take(shelf.idle);
  shelf.idle_bytes += stored.bytes;
  TellIdle(ShelfOf(stored));
  return {};
}

void FactorCache::Unlist(Stored& stored) noexcept {
  if (!stored.idle.taken()) return;
  Shelf& shelf = shelves_[ShelfOf(stored)];
  stored.idle.Leave(shelf.idle);
  shelf.idle_bytes -= stored.bytes;
  TellIdle(ShelfOf(stored));
}

void FactorCache::TellIdle(size_t shelf) noexcept {
  for (const auto& slot : pool_->slots()) {
    if (ShelfOf(*slot) == shelf) slot->idle_bytes = shelves_[shelf].idle_bytes;
  }
}

void FactorCache::ListRecord(Stored& stored) noexcept {
  if (stored.record == nullptr) return;
  stored.recorded.Take(records_);
  record_bytes_ += stored.record->reservation.bytes();
}

std::shared_ptr<const IterationRecord> FactorCache::TakeRecordOf(Stored& stored) noexcept {
  if (stored.recorded.taken()) {
    stored.recorded.Leave(records_);
    record_bytes_ -= stored.record->reservation.bytes();
  }
  return std::move(stored.record);
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

bool FactorCache::Pin::has_matrix() const { return stored_->has_matrix; }

size_t FactorCache::Pin::promotion_bytes() const {
  return cache_->IsResident(*stored_) ? 0 : stored_->bytes;
}

absl::StatusOr<const Factorization*> FactorCache::Pin::OnDevice(ExecutionContext& context,
                                                                Reservation room, bool* promoted) {
  return cache_->MakeResident(*stored_, context, std::move(room), promoted);
}

absl::StatusOr<bool> FactorCache::Pin::ReadOnHost(ReadParts read) {
  return cache_->ReadIfOnHost(*stored_, read);
}

void FactorCache::Unpin(std::shared_ptr<Stored> stored) noexcept {
  const absl::Time now = WallNow();
  Charged freed;
  MutexLock lock(&mutex_);
  --stored->pins;
  // Whichever version was used: the handle was.
  if (const auto found = entries_.find(stored->handle); found != entries_.end()) {
    Entry& entry = *found->second;
    Reschedule(entry, [&] {
      --entry.uses;
      entry.lease_expire_time = LeaseFrom(entry, now);
    });
  }
  freed = Settle(*stored);
}

}  // namespace crout
