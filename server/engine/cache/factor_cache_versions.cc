// SPDX-License-Identifier: Apache-2.0

#include "server/engine/cache/cached_version.h"

#include <algorithm>
#include <utility>

#include "kernels/util/clock.h"
#include "kernels/util/status_macros.h"

namespace crout {

Tier FactorCache::TierOf(const CachedVersion& stored) {
  return ShelfOf(stored) == kHostShelf ? Tier::kHost : Tier::kDevice;
}

size_t FactorCache::ShelfOf(const CachedVersion& stored) {
  return stored.resident ? ShelfOf(*stored.slot) : kHostShelf;
}

size_t FactorCache::ShelfOf(const DeviceSlot& slot) {
  return slot.on_host() ? kHostShelf : static_cast<size_t>(slot.index) + 1;
}

std::shared_ptr<CachedVersion> FactorCache::MakeVersion(NewFactor factor) {
  auto stored = std::make_shared<CachedVersion>();
  stored->nnz = factor.nnz;
  stored->timings = factor.timings;
  // A 0 x 0 matrix counts as kept: it has no bytes.
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
  CROUT_ASSIGN_OR_RETURN(Entry * entry, handles_.Find(tenant, handle, now, miss));
  if (!IsLost(*entry->stored)) return entry;
  *miss = MissOf(Removal::kDeviceLost);
  return GoneStatus(Removal::kDeviceLost);
}

bool FactorCache::IsLost(const CachedVersion& stored) {
  return TierOf(stored) == Tier::kDevice && !stored.slot->device->healthy();
}

FactorInfo FactorCache::Info(const Entry& entry, const CachedVersion& stored, absl::Time now) {
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
          .lease_expire_time = entry.LeaseEnd(now),
          .timings = stored.timings};
}

std::shared_ptr<CachedVersion> FactorCache::Remove(const Handle& handle, Removal cause) noexcept {
  const std::unique_ptr<Entry> entry = handles_.Remove(handle, cause);
  events_->OnEviction(TierOf(*entry->stored), EvictionOf(cause));
  request_ids_.Forget(entry->tenant, entry->request_id, entry->handle);
  return Detach(*entry);
}

void FactorCache::Attach(Entry& entry, std::shared_ptr<CachedVersion> stored) noexcept {
  stored->handle = entry.handle;
  stored->entry = &entry;
  Shelve(*stored);
  ListRecord(*stored);
  entry.stored = std::move(stored);
}

std::shared_ptr<CachedVersion> FactorCache::Detach(Entry& entry) noexcept {
  Unshelve(*entry.stored);
  entry.stored->entry = nullptr;
  return std::move(entry.stored);
}

void FactorCache::Move(CachedVersion& stored, absl::FunctionRef<void()> change) noexcept {
  if (stored.entry != nullptr) Unshelve(stored);
  change();
  if (stored.entry != nullptr) Shelve(stored);
}

void FactorCache::Shelve(CachedVersion& stored) noexcept {
  Shelf& shelf = shelves_[ShelfOf(stored)];
  stored.shelved.Take(shelf.stored);
  shelf.bytes += stored.bytes;
  stored.entry->account.AddBytes(TierOf(stored), static_cast<int64_t>(stored.bytes));
}

void FactorCache::Unshelve(CachedVersion& stored) noexcept {
  Unlist(stored);
  Shelf& shelf = shelves_[ShelfOf(stored)];
  stored.shelved.Leave(shelf.stored);
  shelf.bytes -= stored.bytes;
  stored.entry->account.AddBytes(TierOf(stored), -static_cast<int64_t>(stored.bytes));
}

FactorCache::Charged FactorCache::Settle(CachedVersion& stored) noexcept {
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

void FactorCache::Unlist(CachedVersion& stored) noexcept {
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

void FactorCache::ListRecord(CachedVersion& stored) noexcept {
  if (stored.record == nullptr) return;
  stored.recorded.Take(records_);
  record_bytes_ += stored.record->reservation.bytes();
}

std::shared_ptr<const IterationRecord> FactorCache::TakeRecordOf(CachedVersion& stored) noexcept {
  if (stored.recorded.taken()) {
    stored.recorded.Leave(records_);
    record_bytes_ -= stored.record->reservation.bytes();
  }
  return std::move(stored.record);
}

void FactorCache::Rehome(CachedVersion& stored) {
  if (stored.resident || stored.pins > 0 || stored.slot->device->healthy()) return;
  // If no device is healthy, the copy stays, and the call fails when its job would run.
  if (auto slot = pool_->Choose(""); slot.ok()) stored.slot = *slot;
}

FactorCache::Pin::Pin(FactorCache* cache, std::shared_ptr<CachedVersion> stored)
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

void FactorCache::Unpin(std::shared_ptr<CachedVersion> stored) noexcept {
  const absl::Time now = WallNow();
  Charged freed;
  MutexLock lock(&mutex_);
  --stored->pins;
  // A use of an old version also counts as a use of the handle.
  if (Entry* const entry = handles_.Find(stored->handle); entry != nullptr) {
    handles_.Reschedule(*entry, [&] {
      --entry->uses;
      entry->lease_expire_time = entry->LeaseFrom(now);
    });
  }
  freed = Settle(*stored);
}

}  // namespace crout
