// SPDX-License-Identifier: Apache-2.0

#include "server/engine/cache/tiered_store.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/util/allocation.h"
#include "kernels/util/failpoint.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"
#include "server/engine/cache/cached_version.h"
#include "server/engine/error.h"

namespace crout {
namespace {

constexpr double kShortestMemoryRetrySeconds = 0.1;

absl::Status ExhaustedStatus(const DeviceSlot* slot, size_t bytes, const MemoryBudget& budget) {
  const std::string need =
      absl::StrCat("the job needs ", bytes, " bytes of ",
                   slot != nullptr ? slot->device->info().name : std::string("host"), " memory");
  if (bytes > budget.limit()) {  // Waiting will not help.
    return WithReason(absl::ResourceExhaustedError(
                          absl::StrCat(need, ", which exceeds the budget of ", budget.limit(),
                                       " bytes: send a smaller matrix, or "
                                       "raise the budget of the server")),
                      kReasonMemoryExhausted);
  }
  absl::Status status = WithReason(
      absl::ResourceExhaustedError(absl::StrCat(
          need, "; ", budget.limit() - std::min(budget.limit(), budget.reserved()),
          " bytes of the budget of ", budget.limit(), " bytes are free: try again later")),
      kReasonMemoryExhausted);
  const double backlog = slot != nullptr ? slot->scheduler->load().backlog_seconds : 0;
  return WithRetryAfter(std::move(status), std::max(kShortestMemoryRetrySeconds, backlog));
}

// Returns the XXH3 hash of parts in host memory, to detect corruption. The hash of each part is
// seeded with the hash of the parts before it.
uint64_t PartsChecksum(const FactorParts& parts) {
  uint64_t hash = 0;
  for (const FactorPart& part : parts) {
    hash = XXH3_64bits_withSeed(part.buffer.data(), part.buffer.size(), hash);
  }
  return hash;
}

}  // namespace

TieredStore::TieredStore(DevicePool* pool, MemoryResource* host_memory, CacheEvents* events,
                         Owner* owner)
    : pool_(pool),
      host_memory_(host_memory),
      events_(events),
      owner_(owner),
      pressure_(new Mutex[pool->slots().size() + 1]),
      memories_(pool->slots().size() + 1) {}

Tier TieredStore::TierOf(const CachedVersion& version) {
  return MemoryOf(version) == kHost ? Tier::kHost : Tier::kDevice;
}

bool TieredStore::IsLost(const CachedVersion& version) {
  return TierOf(version) == Tier::kDevice && !version.slot->device->healthy();
}

size_t TieredStore::MemoryOf(const CachedVersion& version) {
  return version.resident ? MemoryOf(*version.slot) : kHost;
}

size_t TieredStore::MemoryOf(const DeviceSlot& slot) {
  return slot.on_host() ? kHost : static_cast<size_t>(slot.index) + 1;
}

void TieredStore::Attach(CachedVersion& version, TenantLoads::Account& account) noexcept {
  version.account = &account;
  AddToMemory(version);
  if (version.record != nullptr) {
    version.recorded.Link(records_);
    record_bytes_ += version.record->reservation.bytes();
  }
  ReleaseIfUnused(version);
}

ChargedMemory TieredStore::Detach(CachedVersion& version) noexcept {
  RemoveFromMemory(version);
  version.account = nullptr;
  return ReleaseIfUnused(version);
}

void TieredStore::Pin(CachedVersion& version) {
  if (!version.resident && version.pins == 0 && !version.slot->device->healthy()) {
    // If no device is healthy, the copy stays, and the call fails when its job would run.
    if (auto slot = pool_->Choose(""); slot.ok()) version.slot = *slot;
  }
  RemoveFromIdle(version);
  ++version.pins;
  version.used_while_moving = true;
}

ChargedMemory TieredStore::Unpin(CachedVersion& version) noexcept {
  --version.pins;
  return ReleaseIfUnused(version);
}

const std::list<CachedVersion*>& TieredStore::VersionsOn(const DeviceSlot& slot) const {
  return memories_[MemoryOf(slot)].versions;
}

void TieredStore::AddToMemory(CachedVersion& version) noexcept {
  Memory& memory = memories_[MemoryOf(version)];
  version.attached.Link(memory.versions);
  memory.bytes += version.bytes;
  version.account->AddBytes(TierOf(version), static_cast<int64_t>(version.bytes));
}

void TieredStore::RemoveFromMemory(CachedVersion& version) noexcept {
  RemoveFromIdle(version);
  Memory& memory = memories_[MemoryOf(version)];
  version.attached.Unlink(memory.versions);
  memory.bytes -= version.bytes;
  version.account->AddBytes(TierOf(version), -static_cast<int64_t>(version.bytes));
}

void TieredStore::Move(CachedVersion& version, absl::FunctionRef<void()> change) noexcept {
  const bool attached = version.account != nullptr;
  if (attached) RemoveFromMemory(version);
  change();
  if (attached) AddToMemory(version);
}

ChargedMemory TieredStore::ReleaseIfUnused(CachedVersion& version) noexcept {
  RemoveFromIdle(version);
  if (version.pins > 0 || version.moving) return {};
  if (version.account == nullptr) {
    const bool on_host = MemoryOf(version) == kHost;
    return {.slot = on_host ? nullptr : version.slot,
            .reservation = std::move(version.reservation),
            .parts = std::move(version.factorization.parts),
            .record = RemoveRecord(version)};
  }
  Memory& memory = memories_[MemoryOf(version)];
  version.idle.Link(memory.idle);
  memory.idle_bytes += version.bytes;
  PublishIdleBytes(MemoryOf(version));
  return {};
}

void TieredStore::RemoveFromIdle(CachedVersion& version) noexcept {
  if (!version.idle.linked()) return;
  Memory& memory = memories_[MemoryOf(version)];
  version.idle.Unlink(memory.idle);
  memory.idle_bytes -= version.bytes;
  PublishIdleBytes(MemoryOf(version));
}

void TieredStore::PublishIdleBytes(size_t memory) noexcept {
  for (const auto& slot : pool_->slots()) {
    if (MemoryOf(*slot) == memory) slot->idle_bytes = memories_[memory].idle_bytes;
  }
}

std::shared_ptr<const IterationRecord> TieredStore::RemoveRecord(CachedVersion& version) noexcept {
  if (version.recorded.linked()) {
    version.recorded.Unlink(records_);
    record_bytes_ -= version.record->reservation.bytes();
  }
  return std::move(version.record);
}

absl::StatusOr<Reservation> TieredStore::ReserveOnDevice(DeviceSlot& slot, size_t bytes) {
  return Reserve(&slot, *slot.budget, MemoryOf(slot), bytes);
}

absl::StatusOr<Reservation> TieredStore::ReserveOnHost(size_t bytes) {
  return Reserve(/*slot=*/nullptr, pool_->host_budget(), kHost, bytes);
}

size_t TieredStore::EvictableBytes(const DeviceSlot& slot) const {
  MutexLock lock(&mutex_);
  return memories_[MemoryOf(slot)].idle_bytes;
}

absl::Status TieredStore::CheckReachable(DeviceSlot& slot, size_t bytes) const {
  const MemoryBudget& budget = *slot.budget;
  MutexLock lock(&mutex_);
  const size_t idle = memories_[MemoryOf(slot)].idle_bytes;
  if (budget.limit() - budget.reserved() + idle >= bytes) return absl::OkStatus();
  return ExhaustedStatus(&slot, bytes, budget);
}

absl::StatusOr<Reservation> TieredStore::Reserve(DeviceSlot* slot, MemoryBudget& budget,
                                                 size_t memory, size_t bytes) {
  if (auto reservation = budget.TryReserve(bytes)) return *std::move(reservation);
  owner_->RemoveEnded(slot);  // Expired factors go before idle ones.
  if (memory == kHost) DropRecords(bytes);
  MutexLock lock(&pressure_[memory]);
  while (true) {
    if (auto reservation = budget.TryReserve(bytes)) return *std::move(reservation);
    CROUT_ASSIGN_OR_RETURN(const std::shared_ptr<CachedVersion> victim,
                           SelectVictim(slot, budget, memory, bytes));
    if (victim == nullptr) continue;  // Enough bytes have become free in the meantime.
    if (memory == kHost) {
      Drop(victim);
    } else {
      Demote(victim);
    }
  }
}

void TieredStore::DropRecords(size_t bytes) {
  const MemoryBudget& budget = pool_->host_budget();
  if (bytes > budget.limit()) return;
  std::vector<std::shared_ptr<const IterationRecord>> dropped;
  MutexLock lock(&mutex_);
  size_t free = budget.limit() - budget.reserved();
  // Keep the records if dropping them and all idle factors would not make enough room.
  if (free + memories_[kHost].idle_bytes + record_bytes_ < bytes) return;
  while (free < bytes && !records_.empty()) {
    dropped.push_back(RemoveRecord(*records_.front()));
    free += dropped.back()->reservation.bytes();
  }
}

absl::StatusOr<std::shared_ptr<CachedVersion>> TieredStore::SelectVictim(DeviceSlot* slot,
                                                                         const MemoryBudget& budget,
                                                                         size_t memory,
                                                                         size_t bytes) {
  MutexLock lock(&mutex_);
  const Memory& full = memories_[memory];
  const size_t reachable = budget.limit() - budget.reserved() + full.idle_bytes;
  if (reachable < bytes) return ExhaustedStatus(slot, bytes, budget);
  if (full.idle.empty()) return nullptr;
  CachedVersion& victim = *full.idle.front();
  RemoveFromIdle(victim);
  victim.moving = true;
  victim.used_while_moving = false;
  return victim.shared_from_this();
}

void TieredStore::Drop(const std::shared_ptr<CachedVersion>& victim) {
  ChargedMemory freed;
  MutexLock lock(&mutex_);
  victim->moving = false;
  // If it was detached in the meantime, only its bytes remain to be freed.
  const bool idle = victim->account != nullptr && !victim->used_while_moving;
  freed = idle ? owner_->RemoveEntry(*victim, Removal::kEvicted) : ReleaseIfUnused(*victim);
}

void TieredStore::Demote(const std::shared_ptr<CachedVersion>& victim) {
  ChargedMemory copy;  // The host copy; after the swap below, the parts from the device.
  uint64_t checksum = 0;
  const absl::Status copied = CatchBadAlloc([&] { return CopyToHost(*victim, &copy, &checksum); });

  ChargedMemory freed;
  MutexLock lock(&mutex_);
  victim->moving = false;
  const bool idle = victim->account != nullptr && !victim->used_while_moving;
  if (idle && !copied.ok()) {
    const bool lost = !victim->slot->device->healthy();
    freed = owner_->RemoveEntry(*victim, lost ? Removal::kDeviceLost : Removal::kEvicted);
    return;
  }
  if (idle) {
    events_->OnEviction(Tier::kDevice, CacheEviction::kPressure);
    Move(*victim, [&] {
      std::swap(victim->reservation, copy.reservation);
      std::swap(victim->factorization.parts, copy.parts);
      victim->checksum = checksum;
      victim->resident = false;
    });
  }
  freed = ReleaseIfUnused(*victim);
}

absl::Status TieredStore::CopyToHost(const CachedVersion& from, ChargedMemory* to,
                                     uint64_t* checksum) {
  if (from.factorization.parts.is_fixed()) {  // checked before other factors make room for the copy
    return absl::FailedPreconditionError(
        "this factor cannot be copied: it is usable only on its device");
  }
  CROUT_ASSIGN_OR_RETURN(to->reservation, ReserveOnHost(from.bytes));
  {
    DeviceSlot& slot = *from.slot;
    MutexLock lock(&slot.transfer_mutex);
    CROUT_ASSIGN_OR_RETURN(to->parts, crout::CopyToHost(*slot.transfer_context,
                                                        from.factorization.parts, *host_memory_));
  }
  *checksum = PartsChecksum(to->parts);
  return absl::OkStatus();
}

bool TieredStore::IsResident(const CachedVersion& version) const {
  MutexLock lock(&mutex_);
  return version.resident;
}

absl::StatusOr<const Factorization*> TieredStore::MakeResident(CachedVersion& version,
                                                               ExecutionContext& context,
                                                               Reservation reservation,
                                                               bool* promoted) {
  *promoted = false;
  // The caller's pin keeps a resident version where it is.
  if (IsResident(version)) return &version.factorization;
  MutexLock promotion(&version.promotion);
  if (IsResident(version)) return &version.factorization;
  if (reservation.bytes() < version.bytes) {
    return ExhaustedStatus(version.slot, version.bytes, *version.slot->budget);
  }
  Stopwatch stopwatch;
  CROUT_RETURN_IF_ERROR(CheckHostCopy(version));
  ChargedMemory charged;
  CROUT_ASSIGN_OR_RETURN(charged.parts, CopyToDevice(context, version.factorization.parts));
  reservation.Shrink(version.bytes);
  charged.reservation = std::move(reservation);
  {
    MutexLock lock(&mutex_);
    Move(version, [&] {
      std::swap(version.reservation, charged.reservation);
      std::swap(version.factorization.parts, charged.parts);
      version.resident = true;
    });
  }
  events_->OnPromotion(stopwatch.Lap());
  *promoted = true;
  return &version.factorization;
}

absl::StatusOr<bool> TieredStore::ReadIfOnHost(CachedVersion& version, ReadParts read) {
  MutexLock promotion(&version.promotion);
  if (IsResident(version)) return false;
  CROUT_RETURN_IF_ERROR(CheckHostCopy(version));
  CROUT_RETURN_IF_ERROR(read(version.factorization.parts));
  return true;
}

absl::Status TieredStore::CheckHostCopy(CachedVersion& version) {
  const FactorParts& parts = version.factorization.parts;
  for (const FactorPart& part : parts) {
    CROUT_RETURN_IF_ERROR(Failpoint("cache.host_copy", {part.buffer.data(), part.buffer.size()}));
  }
  if (PartsChecksum(parts) == version.checksum) return absl::OkStatus();
  {
    MutexLock lock(&mutex_);
    // The caller's pin keeps the memory, so there is none to free.
    if (version.account != nullptr) owner_->RemoveEntry(version, Removal::kDataLoss);
  }
  return WithReason(
      absl::DataLossError(
          "the stored copy of the factor is corrupt and was dropped. Factor the matrix again"),
      kReasonDataLoss);
}

std::array<TierState, 2> TieredStore::tiers() const {
  std::array<TierState, 2> tiers;
  MutexLock lock(&mutex_);
  for (size_t i = 0; i < memories_.size(); ++i) {
    const Tier tier = i == kHost ? Tier::kHost : Tier::kDevice;
    TierState& state = tiers[static_cast<size_t>(tier)];
    state.entries += static_cast<int64_t>(memories_[i].versions.size());
    state.bytes += static_cast<int64_t>(memories_[i].bytes);
  }
  return tiers;
}

}  // namespace crout
