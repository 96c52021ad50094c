// SPDX-License-Identifier: Apache-2.0

#include "server/engine/cache/tiered_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"
#include "server/engine/cache/cached_version.h"
#include "server/engine/error.h"

namespace crout {
namespace {

constexpr double kShortestMemoryRetrySeconds = 0.1;

}  // namespace

absl::Status TieredStore::ExhaustedStatus(const DeviceSlot* slot, size_t bytes,
                                          const MemoryBudget& budget, size_t evictable) {
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
          " bytes of the budget of ", budget.limit(), " bytes are free, and evicting idle factors ",
          "of this tenant and of tenants above their shares would free ", evictable,
          " bytes: try again later")),
      kReasonMemoryExhausted);
  const double backlog = slot != nullptr ? slot->scheduler->load().backlog_seconds : 0;
  return WithRetryAfter(std::move(status), std::max(kShortestMemoryRetrySeconds, backlog));
}

TieredStore::TieredStore(DevicePool* pool, MemoryResource* host_memory, CacheEvents* events,
                         TenantLoads* loads, Owner* owner, size_t max_pinned_bytes,
                         FactorStore* files)
    : pool_(pool),
      events_(events),
      loads_(loads),
      owner_(owner),
      memories_(pool->slots().size() + (files != nullptr ? 2 : 1)),
      max_pinned_bytes_(max_pinned_bytes) {
  for (size_t i = 0; i < memories_.size(); ++i) memories_[i].index = i;
  host().tier = Tier::kHost;
  host().budget = &pool->host_budget();
  host().copier = std::make_unique<HostCopier>(host_memory);
  for (const auto& slot : pool->slots()) {
    if (slot->on_host()) continue;
    TierMemory& memory = MemoryOf(*slot);
    memory.slot = slot.get();
    memory.budget = slot->budget;
    memory.below = &host();
  }
  if (max_pinned_bytes_ == 0) {
    for (const TierMemory& memory : memories_) {
      if (memory.budget != nullptr) max_pinned_bytes_ += memory.budget->limit() / 4;
    }
  }
  if (files == nullptr) return;
  file_memory().tier = Tier::kStore;
  file_memory().budget = &files->budget();
  file_memory().copier = std::make_unique<StoreCopier>(
      files, host_memory,
      [this](size_t bytes, std::string_view tenant) { return ReserveOnHost(bytes, tenant); });
  host().below = &file_memory();
}

absl::Status TieredStore::CheckPinnable(const CachedVersion& version,
                                        const TenantLoads::Account& account,
                                        const CachedVersion* replaced) const {
  if (replaced != nullptr && !replaced->pinned) replaced = nullptr;
  const auto check = [&](absl::string_view whose, size_t pinned, size_t limit, size_t returned) {
    if (pinned - returned + version.bytes <= limit) return absl::OkStatus();
    return WithReason(absl::ResourceExhaustedError(absl::StrCat(
                          "the factor has ", version.bytes, " bytes and cannot be pinned: ",
                          pinned - returned, " bytes ", whose, " are pinned, and the limit is ",
                          limit, ": release or unpin a factor, or request no pin")),
                      kReasonPinLimit);
  };
  CROUT_RETURN_IF_ERROR(check("of this tenant", static_cast<size_t>(account.pinned_bytes()),
                              max_pinned_bytes_, replaced != nullptr ? replaced->bytes : 0));
  for (const TierMemory& memory : memories_) {
    if (!CountsIn(version, memory)) continue;
    const size_t returned =
        replaced != nullptr && CountsIn(*replaced, memory) ? replaced->bytes : 0;
    CROUT_RETURN_IF_ERROR(
        check("in its memory", memory.pinned_bytes, memory.budget->limit() / 2, returned));
  }
  return absl::OkStatus();
}

void TieredStore::SetPinned(CachedVersion& version, bool pinned) noexcept {
  CountPinned(version, -1);
  version.pinned = pinned;
  CountPinned(version, +1);
  version.used_while_moving = true;  // cancels an eviction that has selected the version
  ReleaseIfUnused(version);
}

void TieredStore::CountPinned(const CachedVersion& version, int sign) noexcept {
  if (!version.pinned || version.account == nullptr) return;
  version.account->AddPinnedBytes(sign * static_cast<int64_t>(version.bytes));
  pinned_bytes_ += static_cast<size_t>(sign) * version.bytes;
  for (TierMemory& memory : memories_) {
    if (!CountsIn(version, memory)) continue;
    memory.pinned_bytes += static_cast<size_t>(sign) * version.bytes;
  }
}

bool TieredStore::IsLost(const CachedVersion& version) {
  const DeviceSlot* const slot = version.memory->slot;
  return slot != nullptr && !slot->device->healthy() && !version.file;
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

TenantLoads::Account TieredStore::OpenAccount(std::string_view tenant) const {
  if (tenant.empty()) return {};
  TenantLoads::Account account = loads_->Open(tenant);
  MutexLock lock(&mutex_);
  account.MakeShares(memories_.size());
  return account;
}

void TieredStore::Pin(CachedVersion& version) {
  if (!version.resident && version.pins == 0 && !version.slot->device->healthy()) {
    // If no device is healthy, the copy stays, and the call fails when its job would run.
    if (auto slot = pool_->Choose(""); slot.ok()) {
      CountPinned(version, -1);
      version.slot = *slot;
      CountPinned(version, +1);
    }
  }
  RemoveFromIdle(version);
  ++version.pins;
  version.used_while_moving = true;
}

ChargedMemory TieredStore::Unpin(CachedVersion& version) noexcept {
  --version.pins;
  return ReleaseIfUnused(version);
}

void TieredStore::AddToMemory(CachedVersion& version) noexcept {
  TierMemory& memory = *version.memory;
  version.attached.Link(memory.versions);
  memory.bytes += version.bytes;
  TenantShare& share = ShareOf(version);
  if (share.bytes == 0) ++memory.tenants;
  share.Reorder(memory.evictable, [&] { share.bytes += version.bytes; });
  version.account->AddBytes(memory.tier, static_cast<int64_t>(version.bytes));
  if (version.file) bytes_beside_files_ += version.bytes_beside_file;
  CountPinned(version, +1);
}

void TieredStore::RemoveFromMemory(CachedVersion& version) noexcept {
  RemoveFromIdle(version);
  CountPinned(version, -1);
  TierMemory& memory = *version.memory;
  version.attached.Unlink(memory.versions);
  memory.bytes -= version.bytes;
  TenantShare& share = ShareOf(version);
  share.Reorder(memory.evictable, [&] { share.bytes -= version.bytes; });
  if (share.bytes == 0) --memory.tenants;
  version.account->AddBytes(memory.tier, -static_cast<int64_t>(version.bytes));
  if (version.file) bytes_beside_files_ -= version.bytes_beside_file;
}

void TieredStore::Move(CachedVersion& version, TierMemory& to, ChargedMemory& copy) noexcept {
  const bool attached = version.account != nullptr;
  if (attached) RemoveFromMemory(version);
  std::swap(version.reservation, copy.reservation);
  std::swap(version.factorization.parts, copy.parts);
  version.checksum = copy.checksum;
  if (to.tier == Tier::kStore) {
    version.reservation = copy.reservation.Split(CachedVersion::kEntryBytes);
    if (copy.file) version.file = copy.file.Claim();
  } else if (!version.durable) {
    copy.file = UnclaimedFile(std::move(version.file));
  }
  version.memory = &to;
  if (attached) AddToMemory(version);
}

ChargedMemory TieredStore::ReleaseIfUnused(CachedVersion& version) noexcept {
  RemoveFromIdle(version);
  if (version.pins > 0 || version.moving) return {};
  if (version.account == nullptr) {
    return {.slot = version.memory->slot,
            .reservation = std::move(version.reservation),
            .parts = std::move(version.factorization.parts),
            .checksum = 0,
            .file = UnclaimedFile(std::move(version.file)),
            .record = RemoveRecord(version)};
  }
  TierMemory& memory = *version.memory;
  if (version.pinned || (version.durable && memory.tier == Tier::kStore)) return {};
  TenantShare& share = ShareOf(version);
  share.Reorder(memory.evictable, [&] {
    version.idle.Link(share.idle);
    share.idle_bytes += version.bytes;
  });
  memory.idle_bytes += version.bytes;
  PublishIdleBytes(memory);
  return {};
}

void TieredStore::RemoveFromIdle(CachedVersion& version) noexcept {
  if (!version.idle.linked()) return;
  TierMemory& memory = *version.memory;
  TenantShare& share = ShareOf(version);
  share.Reorder(memory.evictable, [&] {
    version.idle.Unlink(share.idle);
    share.idle_bytes -= version.bytes;
  });
  memory.idle_bytes -= version.bytes;
  PublishIdleBytes(memory);
}

void TieredStore::PublishIdleBytes(const TierMemory& memory) noexcept {
  for (const auto& slot : pool_->slots()) {
    if (&MemoryOf(*slot) == &memory) slot->idle_bytes = memory.idle_bytes;
  }
}

std::shared_ptr<const IterationRecord> TieredStore::RemoveRecord(CachedVersion& version) noexcept {
  if (version.recorded.linked()) {
    version.recorded.Unlink(records_);
    record_bytes_ -= version.record->reservation.bytes();
  }
  return std::move(version.record);
}

absl::StatusOr<Reservation> TieredStore::ReserveOnDevice(DeviceSlot& slot, size_t bytes,
                                                         std::string_view tenant) {
  return Reserve(&slot, MemoryOf(slot), bytes, tenant);
}

absl::StatusOr<Reservation> TieredStore::ReserveOnHost(size_t bytes, std::string_view tenant) {
  return Reserve(/*slot=*/nullptr, host(), bytes, tenant);
}

size_t TieredStore::ShareBytes(const TierMemory& memory, const TenantShare& own) {
  return memory.budget->limit() / (memory.tenants + (own.bytes == 0 ? 1 : 0));
}

size_t TieredStore::Evictable(const TierMemory& memory, const Request& request) {
  if (request.own == nullptr) return memory.idle_bytes;
  const size_t share = ShareBytes(memory, *request.own);
  size_t bytes = request.own->idle_bytes;
  for (auto next = memory.evictable.rbegin(); next != memory.evictable.rend(); ++next) {
    const TenantShare& other = **next;
    if (other.bytes <= share || bytes >= request.bytes) break;
    if (&other != request.own) bytes += std::min(other.idle_bytes, other.bytes - share);
  }
  return bytes;
}

const TenantShare* TieredStore::NextVictim(const TierMemory& memory, const Request& request) {
  auto next = memory.evictable.rbegin();
  if (next != memory.evictable.rend() && *next == request.own) ++next;
  const TenantShare* const other = next == memory.evictable.rend() ? nullptr : *next;
  if (request.own == nullptr) return other;
  const TenantShare* const own = request.own->idle.empty() ? nullptr : request.own;
  if (other == nullptr || other->bytes <= ShareBytes(memory, *request.own)) return own;
  return own != nullptr && own->bytes + request.bytes >= other->bytes ? own : other;
}

size_t TieredStore::EvictableBytes(const DeviceSlot& slot, std::string_view tenant) const {
  const TenantLoads::Account account = OpenAccount(tenant);
  const TierMemory& memory = MemoryOf(slot);
  MutexLock lock(&mutex_);
  return Evictable(memory, {.bytes = memory.budget->limit(), .own = account.share(memory.index)});
}

absl::Status TieredStore::CheckReachable(DeviceSlot& slot, size_t bytes,
                                         std::string_view tenant) const {
  const MemoryBudget& budget = *slot.budget;
  const TenantLoads::Account account = OpenAccount(tenant);
  const TierMemory& memory = MemoryOf(slot);
  MutexLock lock(&mutex_);
  const size_t evictable =
      Evictable(memory, {.slot = &slot, .bytes = bytes, .own = account.share(memory.index)});
  if (budget.limit() - budget.reserved() + evictable >= bytes) return absl::OkStatus();
  return ExhaustedStatus(&slot, bytes, budget, evictable);
}

absl::StatusOr<Reservation> TieredStore::Reserve(DeviceSlot* slot, TierMemory& memory, size_t bytes,
                                                 std::string_view tenant) {
  MemoryBudget& budget = *memory.budget;
  if (auto reservation = budget.TryReserve(bytes)) return *std::move(reservation);
  owner_->RemoveEnded(slot);  // Expired factors go before idle ones.
  const TenantLoads::Account account = OpenAccount(tenant);
  const Request request = {.slot = slot, .bytes = bytes, .own = account.share(memory.index)};
  if (&memory == &host()) DropRecords(request);
  MutexLock lock(&memory.pressure);
  while (true) {
    if (auto reservation = budget.TryReserve(bytes)) return *std::move(reservation);
    CROUT_ASSIGN_OR_RETURN(const std::shared_ptr<CachedVersion> victim,
                           SelectVictim(memory, request));
    if (victim == nullptr) continue;  // Enough bytes have become free in the meantime.
    if (memory.below != nullptr) {
      Demote(victim, *memory.below);
    } else {
      Drop(victim);
    }
  }
}

void TieredStore::DropRecords(const Request& request) {
  const size_t bytes = request.bytes;
  const MemoryBudget& budget = pool_->host_budget();
  if (bytes > budget.limit()) return;
  std::vector<std::shared_ptr<const IterationRecord>> dropped;
  MutexLock lock(&mutex_);
  size_t free = budget.limit() - budget.reserved();
  // Keep the records if dropping them and all idle factors would not make enough room.
  if (free + Evictable(host(), request) + record_bytes_ < bytes) return;
  while (free < bytes && !records_.empty()) {
    dropped.push_back(RemoveRecord(*records_.front()));
    free += dropped.back()->reservation.bytes();
  }
}

absl::StatusOr<std::shared_ptr<CachedVersion>> TieredStore::SelectVictim(TierMemory& memory,
                                                                         const Request& request) {
  MutexLock lock(&mutex_);
  const MemoryBudget& budget = *memory.budget;
  const size_t evictable = Evictable(memory, request);
  if (budget.limit() - budget.reserved() + evictable < request.bytes) {
    return ExhaustedStatus(request.slot, request.bytes, budget, evictable);
  }
  const TenantShare* const share = NextVictim(memory, request);
  if (share == nullptr) return nullptr;
  CachedVersion& victim = *share->idle.front();
  RemoveFromIdle(victim);
  victim.moving = true;
  victim.used_while_moving = false;
  return victim.shared_from_this();
}

size_t TieredStore::pinned_bytes() const {
  MutexLock lock(&mutex_);
  return pinned_bytes_;
}

TierStates TieredStore::tiers() const {
  TierStates tiers;
  MutexLock lock(&mutex_);
  for (const TierMemory& memory : memories_) {
    TierState& state = tiers[static_cast<size_t>(memory.tier)];
    state.entries += static_cast<int64_t>(memory.versions.size());
    state.bytes += static_cast<int64_t>(memory.bytes);
  }
  return tiers;
}

}  // namespace crout
