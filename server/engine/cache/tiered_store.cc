// SPDX-License-Identifier: Apache-2.0

#include "server/engine/cache/tiered_store.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"
#include "server/engine/cache/cached_version.h"
#include "server/engine/cache/memory_shares.h"
#include "server/engine/error.h"
#include "server/engine/quotas/quotas.h"

namespace crout {
namespace {

constexpr double kShortestMemoryRetrySeconds = 0.1;

// Returns the seconds after which the jobs that hold memory have ended.
double RetrySeconds(const DeviceSlot* slot, const ShareRoom& room) {
  const double backlog = slot != nullptr ? slot->scheduler->load().backlog_seconds : 0;
  return std::max(kShortestMemoryRetrySeconds, backlog > 0 ? backlog : room.kept_for.count());
}

}  // namespace

absl::Status TieredStore::ExhaustedStatus(const DeviceSlot* slot, size_t bytes,
                                          const MemoryBudget& budget, const ShareRoom& room) {
  const std::string need =
      absl::StrCat("the job needs ", bytes, " bytes of ",
                   slot != nullptr ? slot->device->info().name : std::string("host"), " memory");
  if (bytes > budget.limit()) {  // Waiting will not help.
    absl::string_view setting = "the budget";
    if (slot != nullptr) setting = slot->on_host() ? "--host-budget" : "--device-budget";
    return WithReason(absl::ResourceExhaustedError(absl::StrCat(
                          need, ", which exceeds the budget of ", budget.limit(),
                          " bytes: send a smaller matrix, or raise ", setting, " of the server")),
                      kReasonMemoryExhausted);
  }
  absl::Status status = WithReason(
      absl::ResourceExhaustedError(absl::StrCat(
          need, "; ", room.free, " bytes of the budget of ", budget.limit(),
          " bytes are free, evicting idle factors of tenants above their shares would free ",
          room.evictable, " bytes, and ", room.kept,
          " bytes are kept for other tenants: try again later")),
      kReasonMemoryExhausted);
  return WithRetryAfter(std::move(status), RetrySeconds(slot, room));
}

TieredStore::TieredStore(DevicePool* pool, MemoryResource* host_memory, CacheEvents* events,
                         TenantLoads* loads, const Quotas* quotas, Owner* owner,
                         size_t max_pinned_bytes, FactorStore* files)
    : pool_(pool),
      events_(events),
      loads_(loads),
      quotas_(quotas),
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
    for (const auto& other : pool->slots()) {
      const DeviceInfo& info = other->device->info();
      if (other != slot && info.kind == slot->device->info().kind && info.ranks == 0 &&
          info.description == slot->device->info().description) {
        memory.peers.push_back(&MemoryOf(*other));
      }
    }
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

TieredStore::~TieredStore() {
  // The threads that remove files use the shares until the files are gone.
  for (TierMemory& memory : memories_) {
    if (memory.copier != nullptr) memory.copier->AwaitAllFreed();
  }
  for (TierMemory& memory : memories_) {
    while (EndKeptMemory(memory, /*all=*/true) != nullptr) {
    }
  }
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
  const auto pinned = static_cast<size_t>(account.pinned_bytes());
  const size_t unpinned = replaced != nullptr ? replaced->bytes : 0;
  CROUT_RETURN_IF_ERROR(check("of this tenant", pinned, max_pinned_bytes_, unpinned));
  const int64_t quota = quotas_->Of(account.tenant()).pinned_bytes;
  if (pinned - unpinned + version.bytes > static_cast<size_t>(quota)) {
    return QuotaExceeded(account.tenant(), "pinned_bytes",
                         absl::StrCat("the factor has ", version.bytes, " bytes, and ",
                                      pinned - unpinned, " bytes are pinned"),
                         absl::StrCat(quota), "Release or unpin a factor, or request no pin",
                         /*retry_seconds=*/std::nullopt);
  }
  for (const TierMemory& memory : memories_) {
    if (!CountsIn(version, memory)) continue;
    const size_t returned =
        replaced != nullptr && CountsIn(*replaced, memory) ? replaced->bytes : 0;
    CROUT_RETURN_IF_ERROR(
        check("in its memory", memory.pinned_bytes, memory.budget->limit() / 2, returned));
  }
  return absl::OkStatus();
}

absl::Status TieredStore::CheckFactors(const TenantLoads::Account& account) const {
  const int64_t quota = quotas_->Of(account.tenant()).factors;
  if (account.factors() < quota) return absl::OkStatus();
  return QuotaExceeded(account.tenant(), "factors",
                       absl::StrCat("it has ", account.factors(), " cached factors"),
                       absl::StrCat(quota), "Release a factor, or solve without caching one",
                       /*retry_seconds=*/std::nullopt);
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
  return version.resident && !version.slot->device->healthy() && !version.file;
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
  EndCopies(version);
  RemoveFromMemory(version);
  version.account = nullptr;
  return ReleaseIfUnused(version);
}

void TieredStore::DetachAll() noexcept {
  // Writes that have not ended use the parts of versions.
  for (TierMemory& memory : memories_) {
    if (memory.copier != nullptr) memory.copier->AwaitAllFreed();
  }
  std::list<std::shared_ptr<CachedVersion>> copies;  // destroyed after the lock is released
  MutexLock lock(&mutex_);
  for (TierMemory& memory : memories_) {
    copies.splice(copies.end(), memory.copies);
    while (!memory.versions.empty()) RemoveFromMemory(*memory.versions.front());
  }
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
    const auto demand = [&](DeviceSlot&) { return JobDemand{.bytes = version.bytes}; };
    if (auto slot = pool_->Choose("", demand); slot.ok()) {
      CountPinned(version, -1);
      version.slot = *slot;
      CountPinned(version, +1);
    }
  }
  RemoveFromIdle(version);
  ++version.pins;
  version.used_while_moving = true;
  // A use of a copy counts as a use of its original, but does not cancel an eviction. Else uses of
  // the copies could cancel each attempt.
  if (version.original != nullptr) ReleaseIfUnused(*version.original);
}

ChargedMemory TieredStore::Unpin(CachedVersion& version) noexcept {
  --version.pins;
  return ReleaseIfUnused(version);
}

void TieredStore::AddToMemory(CachedVersion& version) noexcept {
  TierMemory& memory = *version.memory;
  version.attached.Link(memory.versions);
  memory.bytes += version.bytes;
  ShareOf(version).cached_bytes += version.bytes;
  version.account->AddBytes(memory.tier, static_cast<int64_t>(version.bytes));
  CountBesideFile(version, +1);
  CountPinned(version, +1);
}

void TieredStore::RemoveFromMemory(CachedVersion& version) noexcept {
  RemoveFromIdle(version);
  CountPinned(version, -1);
  TierMemory& memory = *version.memory;
  version.attached.Unlink(memory.versions);
  memory.bytes -= version.bytes;
  ShareOf(version).cached_bytes -= version.bytes;
  version.account->AddBytes(memory.tier, -static_cast<int64_t>(version.bytes));
  CountBesideFile(version, -1);
}

void TieredStore::CountBesideFile(const CachedVersion& version, int sign) noexcept {
  if (!version.file) return;
  const auto by = static_cast<size_t>(sign);
  bytes_beside_files_ += by * version.bytes_beside_file;
  const size_t entry = version.file_entry.bytes();
  version.account->AddBytes(Tier::kHost, sign * static_cast<int64_t>(entry));
  version.account->share(host().index)->cached_bytes += by * entry;
}

void TieredStore::Move(CachedVersion& version, TierMemory& to, ChargedMemory& copy) noexcept {
  const bool attached = version.account != nullptr;
  EndCopies(version);
  if (attached) RemoveFromMemory(version);
  std::swap(version.reservation, copy.reservation);
  std::swap(version.factorization.parts, copy.parts);
  version.checksum = copy.checksum;
  if (to.tier == Tier::kStore) {
    // A version without a file comes from host memory, and `copy` now has its reservation there.
    if (!version.file) version.file_entry = copy.reservation.Split(CachedVersion::kEntryBytes);
    if (copy.file) version.file = copy.file.Claim();
  } else if (version.file && !version.durable) {
    std::swap(version.file_entry, copy.reservation);  // which was empty
    copy.file = UnclaimedFile(std::move(version.file));
  }
  // A write that has not ended reads the parts that are now in `copy`.
  if (version.overdue != nullptr) {
    version.overdue->Keep(copy.reservation, copy.parts);
    version.overdue = nullptr;
  }
  version.memory = &to;
  if (attached) AddToMemory(version);
}

ChargedMemory TieredStore::ReleaseIfUnused(CachedVersion& version) noexcept {
  RemoveFromIdle(version);
  if (version.pins > 0 || version.moving) return {};
  if (version.account == nullptr) {
    if (version.overdue != nullptr) {
      version.overdue->Keep(version.reservation, version.factorization.parts);
    }
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
  UpdateShare(memory, share, [&] {
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
  UpdateShare(memory, share, [&] {
    version.idle.Unlink(share.idle);
    share.idle_bytes -= version.bytes;
  });
  memory.idle_bytes -= version.bytes;
  PublishIdleBytes(memory);
}

void TieredStore::PublishIdleBytes(const TierMemory& memory) noexcept {
  for (const auto& slot : pool_->slots()) {
    if (&MemoryOf(*slot) == &memory) slot->idle_bytes = memory.idle_bytes + memory.copy_bytes;
  }
}

std::shared_ptr<const IterationRecord> TieredStore::RemoveRecord(CachedVersion& version) noexcept {
  if (version.recorded.linked()) {
    version.recorded.Unlink(records_);
    record_bytes_ -= version.record->reservation.bytes();
  }
  return std::move(version.record);
}

std::shared_ptr<ShareOwner> TieredStore::OwnerOf(TierMemory& memory, std::string_view tenant,
                                                 ShareUse use) {
  if (tenant.empty()) return nullptr;
  return std::make_shared<ShareOwner>(mutex_, memory, OpenAccount(tenant), quotas_->Of(tenant),
                                      use);
}

absl::StatusOr<Reservation> TieredStore::ReserveOnDevice(DeviceSlot& slot, size_t bytes,
                                                         std::string_view tenant) {
  return Reserve(&slot, MemoryOf(slot), bytes, OwnerOf(MemoryOf(slot), tenant), tenant);
}

absl::StatusOr<Reservation> TieredStore::ReserveOnHost(size_t bytes, std::string_view tenant) {
  return Reserve(/*slot=*/nullptr, host(), bytes, OwnerOf(host(), tenant), tenant);
}

size_t TieredStore::EvictableBytes(DeviceSlot& slot, std::string_view tenant) {
  TierMemory& memory = MemoryOf(slot);
  const std::shared_ptr<ShareOwner> owner = OwnerOf(memory, tenant);
  MutexLock lock(&mutex_);
  return memory.copy_bytes +
         RoomFor(memory, {.bytes = memory.budget->limit(), .owner = owner.get()}).evictable;
}

absl::Status TieredStore::CheckReachable(DeviceSlot& slot, size_t bytes, std::string_view tenant) {
  TierMemory& memory = MemoryOf(slot);
  const std::shared_ptr<ShareOwner> owner = OwnerOf(memory, tenant);
  const ShareRequest request = {.bytes = bytes, .owner = owner.get()};
  {
    MutexLock lock(&mutex_);
    absl::Status status = CheckRoom(&slot, memory, request);
    if (status.ok() || memory.copies.empty()) return status;
  }
  DropCopies(memory, request);
  MutexLock lock(&mutex_);
  return CheckRoom(&slot, memory, request);
}

absl::Status TieredStore::CheckRoom(const DeviceSlot* slot, TierMemory& memory,
                                    const ShareRequest& request) {
  const ShareRoom room = RoomFor(memory, request);
  CROUT_RETURN_IF_ERROR(CheckQuotas(memory, request, RetrySeconds(slot, room)));
  if (room.Fits(request.bytes)) return absl::OkStatus();
  absl::Status status = ExhaustedStatus(slot, request.bytes, *memory.budget, room);
  if (const std::optional<double> delay = RetryAfterOf(status)) {
    KeepFor(memory, request, std::chrono::duration<double>(*delay));
  }
  return status;
}

absl::StatusOr<Reservation> TieredStore::Reserve(DeviceSlot* slot, TierMemory& memory, size_t bytes,
                                                 std::shared_ptr<ShareOwner> owner,
                                                 std::string_view tenant) {
  MemoryBudget& budget = *memory.budget;
  if (auto reservation = budget.TryReserve(bytes, owner)) return *std::move(reservation);
  const ShareRequest request = {.bytes = bytes, .owner = owner.get()};
  DropCopies(memory, request);
  owner_->RemoveEnded(slot);  // Expired factors go before idle ones.
  if (&memory == &host()) DropRecords(request);
  MutexLock lock(&memory.pressure);
  while (true) {
    if (auto reservation = budget.TryReserve(bytes, owner)) return *std::move(reservation);
    CROUT_ASSIGN_OR_RETURN(const std::shared_ptr<CachedVersion> victim,
                           SelectVictim(slot, memory, request));
    if (victim == nullptr) continue;  // Enough bytes have become free in the meantime.
    if (memory.below != nullptr) {
      Demote(victim, *memory.below, tenant);
    } else {
      Drop(victim, tenant);
    }
  }
}

void TieredStore::DropRecords(const ShareRequest& request) {
  std::vector<std::shared_ptr<const IterationRecord>> dropped;
  MutexLock lock(&mutex_);
  ShareRoom room = RoomFor(host(), request);
  // Keep the records if dropping them and all idle factors would not make enough room.
  room.free += record_bytes_;
  if (!room.Fits(request.bytes)) return;
  room.free -= record_bytes_;
  while (room.free < request.bytes && !records_.empty()) {
    dropped.push_back(RemoveRecord(*records_.front()));
    room.free += dropped.back()->reservation.bytes();
  }
}

absl::StatusOr<std::shared_ptr<CachedVersion>> TieredStore::SelectVictim(
    const DeviceSlot* slot, TierMemory& memory, const ShareRequest& request) {
  MutexLock lock(&mutex_);
  CROUT_RETURN_IF_ERROR(CheckRoom(slot, memory, request));
  const TenantShare* const share = NextVictim(memory, request);
  if (share == nullptr) return nullptr;
  CachedVersion& victim = *share->idle.front();
  RemoveFromIdle(victim);
  victim.moving = true;
  victim.used_while_moving = false;
  return victim.shared_from_this();
}

void TieredStore::EndKeeping() {
  for (TierMemory& memory : memories_) {
    std::shared_ptr<ReservationOwner> ended;  // destroyed after the lock is released
    do {
      MutexLock lock(&mutex_);
      ended = EndKeptMemory(memory, /*all=*/false);
    } while (ended != nullptr);
  }
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
