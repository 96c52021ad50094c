// SPDX-License-Identifier: Apache-2.0

#include "server/engine/cache/factor_cache.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/util/clock.h"
#include "kernels/util/status_macros.h"
#include "server/engine/cache/cached_version.h"
#include "server/engine/error.h"

namespace crout {
namespace {

// A guess: the duration of the other call's upload is unknown.
constexpr double kClaimRetrySeconds = 0.5;

// A guess: the next renewal of the lease of the folder decides.
constexpr double kLeaseRetrySeconds = 2;

absl::Status SuspendedStatus() {
  return WithRetryAfter(
      WithReason(absl::UnavailableError(
                     "the server cannot confirm at present that the stored factor is its own, "
                     "because the object store does not respond. Try again"),
                 kReasonStoreFailed),
      kLeaseRetrySeconds);
}

UnclaimedFile TakeFile(NewFactor& factor) {
  return factor.written ? std::move(factor.written->file) : UnclaimedFile();
}

}  // namespace

FactorCache::FactorCache(DevicePool* pool, MemoryResource* host_memory, CacheEvents* events,
                         TenantLoads* loads, const Quotas* quotas, size_t max_pinned_bytes,
                         FactorStore* files)
    : pool_(pool),
      events_(events),
      files_(files),
      store_(pool, host_memory, events, loads, quotas, this, max_pinned_bytes, files) {}

FactorCache::~FactorCache() { store_.DetachAll(); }

std::shared_ptr<CachedVersion> FactorCache::MakeVersion(NewFactor factor) {
  auto stored = std::make_shared<CachedVersion>();
  stored->nnz = factor.nnz;
  stored->timings = factor.timings;
  // A 0 x 0 matrix counts as kept: it has no bytes.
  stored->has_matrix = factor.factorization.has_matrix() || factor.factorization.summary.n == 0;
  stored->bytes = Charge(factor.factorization.parts.bytes());
  stored->slot = factor.slot;
  stored->memory = &store_.MemoryOf(*factor.slot);
  stored->reservation = std::move(factor.reservation);
  stored->reservation.Shrink(stored->bytes);
  stored->bytes_beside_file = BytesBesideFile(factor.factorization.summary);
  stored->factorization = std::move(factor.factorization);
  stored->record = std::move(factor.record);
  if (factor.written) {
    stored->durable = true;
    stored->version = factor.written->version;
    stored->file_entry = std::move(factor.written->entry);
  }
  return stored;
}

absl::StatusOr<FactorCache::Entry*> FactorCache::Find(std::string_view tenant, const Handle& handle,
                                                      absl::Time now, CacheMiss* miss) const {
  CROUT_ASSIGN_OR_RETURN(Entry * entry, handles_.Find(tenant, handle, now, miss));
  if (entry->stored->file && !files_->Holds(entry->folder)) {
    *miss = CacheMiss::kSuspended;
    return SuspendedStatus();
  }
  if (!TieredStore::IsLost(*entry->stored)) return entry;
  *miss = MissOf(Removal::kDeviceLost);
  return RemovedStatus(Removal::kDeviceLost);
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
          .pinned = stored.pinned,
          .durable = stored.durable,
          .tier = stored.memory->tier,
          .bytes = stored.bytes,
          .create_time = entry.create_time,
          .lease_expire_time = entry.LeaseEnd(now),
          .timings = stored.timings};
}

absl::StatusOr<FactorInfo> FactorCache::Insert(NewFactor factor, const InsertOptions& options) {
  if (options.durable && !factor.written) {
    return absl::InternalError("a durable factor has no file");
  }
  const absl::Time now = WallNow();
  auto entry = std::make_unique<Entry>(options, store_.OpenAccount(options.tenant),
                                       factor.written ? factor.written->create_time : now,
                                       factor.written ? factor.written->handle : Handle::Random());
  UnclaimedFile file = TakeFile(factor);  // discarded after the lock is released, unless claimed
  entry->folder = file.folder();
  auto stored = MakeVersion(std::move(factor));
  stored->pinned = options.pin;
  FactorInfo info = Info(*entry, *stored, now);
  RequestIds::Node request(entry->tenant, entry->request_id);
  RequestIds::EndedClaim ended;  // destroyed after the lock is released
  MutexLock lock(&store_.mutex());
  if (file && !files_->Holds(entry->folder)) return SuspendedStatus();
  if (!file && files_ != nullptr) entry->folder = files_->home();
  if (options.listed) CROUT_RETURN_IF_ERROR(store_.CheckFactors(entry->account));
  if (options.pin) {
    CROUT_RETURN_IF_ERROR(store_.CheckPinnable(*stored, entry->account, /*replaced=*/nullptr));
  }
  Entry& added = handles_.Insert(std::move(entry));
  // Nothing can fail from here on.
  ended = request_ids_.Complete(std::move(request), added.handle);
  stored->handle = added.handle;
  stored->file = file.Claim();
  added.stored = std::move(stored);
  store_.Attach(*added.stored, added.account);
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
    const absl::StatusOr<FactorInfo> existing = Describe(tenant, *found.factor);
    if (existing.ok()) return std::optional<FactorInfo>(*existing);
    if (absl::IsUnavailable(existing.status())) return existing.status();
    // The factor is gone, but its entry may not be removed yet.
    if (request_ids_.Reclaim(tenant, request_id, *found.factor)) return std::optional<FactorInfo>();
  }
}

absl::StatusOr<FactorInfo> FactorCache::Replace(std::string_view tenant, const Handle& handle,
                                                NewFactor factor) {
  const absl::Time now = WallNow();
  // The memory and the file of a refused or replaced version are freed after the lock.
  UnclaimedFile file = TakeFile(factor);
  std::shared_ptr<CachedVersion> next = MakeVersion(std::move(factor));
  ChargedMemory freed;
  MutexLock lock(&store_.mutex());
  CacheMiss miss;
  CROUT_ASSIGN_OR_RETURN(Entry * entry, Find(tenant, handle, now, &miss));
  if (entry->stored->durable && !next->durable) {
    return absl::InternalError("the next version of a durable factor has no file");
  }
  next->handle = handle;
  if (!next->durable) next->version = entry->last_version + 1;
  if (next->version < entry->stored->version) return Info(*entry, *next, now);
  next->pinned = entry->stored->pinned;
  if (next->pinned) {
    CROUT_RETURN_IF_ERROR(store_.CheckPinnable(*next, entry->account, entry->stored.get()));
  }
  FactorInfo info = Info(*entry, *next, now);
  // Nothing can fail from here on.
  entry->last_version = std::max(entry->last_version, next->version);
  next->file = file.Claim();
  entry->stored.swap(next);
  events_->OnEviction(next->memory->tier, CacheEviction::kReplaced);
  freed = store_.Detach(*next);
  store_.Attach(*entry->stored, entry->account);
  return info;
}

absl::StatusOr<FactorCache::Pin> FactorCache::Acquire(std::string_view tenant,
                                                      const Handle& handle) {
  return AcquireVersion(tenant, handle,
                        [](CachedVersion& version) -> CachedVersion& { return version; });
}

absl::StatusOr<FactorCache::Pin> FactorCache::AcquireToSolve(std::string_view tenant,
                                                             const Handle& handle) {
  std::shared_ptr<CachedVersion> hot;
  DeviceSlot* target = nullptr;
  auto pin = AcquireVersion(tenant, handle, [&](CachedVersion& version) -> CachedVersion& {
    store_.mutex().AssertHeld();
    CachedVersion& chosen = store_.ChooseCopy(version, &target);
    if (target != nullptr) hot = version.shared_from_this();
    return chosen;
  });
  if (target != nullptr) store_.StartCopy(std::move(hot), *target);
  return pin;
}

absl::StatusOr<FactorCache::Pin> FactorCache::AcquireVersion(std::string_view tenant,
                                                             const Handle& handle,
                                                             ChooseVersion choose) {
  const absl::Time now = WallNow();
  MutexLock lock(&store_.mutex());
  CacheMiss miss;
  auto entry = Find(tenant, handle, now, &miss);
  if (!entry.ok()) {
    events_->OnMiss(miss);
    return entry.status();
  }
  CachedVersion& stored = choose(*(*entry)->stored);
  store_.Pin(stored);
  events_->OnHit(stored.memory->tier);
  handles_.Reschedule(**entry, [&] { ++(*entry)->uses; });
  return Pin(this, stored.shared_from_this());
}

absl::StatusOr<FactorInfo> FactorCache::Describe(std::string_view tenant,
                                                 const Handle& handle) const {
  const absl::Time now = WallNow();
  MutexLock lock(&store_.mutex());
  CacheMiss miss;
  CROUT_ASSIGN_OR_RETURN(const Entry* entry, Find(tenant, handle, now, &miss));
  return Info(*entry, *entry->stored, now);
}

absl::StatusOr<FactorInfo> FactorCache::Renew(std::string_view tenant, const Handle& handle,
                                              std::optional<absl::Duration> length, Renewal renewal,
                                              std::optional<bool> pin) {
  const absl::Time now = WallNow();
  MutexLock lock(&store_.mutex());
  CacheMiss miss;
  CROUT_ASSIGN_OR_RETURN(Entry * entry, Find(tenant, handle, now, &miss));
  CachedVersion& stored = *entry->stored;
  if (pin && *pin != stored.pinned) {
    if (*pin) {
      CROUT_RETURN_IF_ERROR(store_.CheckPinnable(stored, entry->account, /*replaced=*/nullptr));
    }
    store_.SetPinned(stored, *pin);
  }
  FactorInfo info = Info(*entry, stored, now);
  handles_.Reschedule(*entry, [&] {
    const absl::Duration lease = length.value_or(entry->lease);
    const bool lengthen = renewal == Renewal::kLengthen;
    entry->lease = lengthen ? std::max(lease, entry->lease) : lease;
    const absl::Time end = std::min(now + lease, entry->life_end);
    entry->lease_expire_time = lengthen ? std::max(end, entry->lease_expire_time) : end;
  });
  info.lease_expire_time = entry->LeaseEnd(now);
  if (stored.file) files_->SetLeaseEnd(stored.file, info.lease_expire_time);
  return info;
}

absl::Status FactorCache::Release(std::string_view tenant, const Handle& handle) {
  const absl::Time now = WallNow();
  ChargedMemory freed;
  MutexLock lock(&store_.mutex());
  CacheMiss miss;
  CROUT_ASSIGN_OR_RETURN(const Entry* entry, Find(tenant, handle, now, &miss));
  freed = RemoveEntry(*entry->stored, Removal::kReleased);
  return absl::OkStatus();
}

std::string FactorCache::FolderOf(std::string_view tenant, const Handle& handle) const {
  MutexLock lock(&store_.mutex());
  const Entry* const entry = handles_.Find(handle);
  return entry == nullptr || entry->tenant != tenant ? std::string() : entry->folder;
}

absl::StatusOr<DeviceSlot*> FactorCache::SlotOf(std::string_view tenant,
                                                const Handle& handle) const {
  const absl::Time now = WallNow();
  MutexLock lock(&store_.mutex());
  CacheMiss miss;
  CROUT_ASSIGN_OR_RETURN(const Entry* entry, Find(tenant, handle, now, &miss));
  return entry->stored->slot;
}

std::vector<FactorInfo> FactorCache::List(std::string_view tenant, std::string_view name,
                                          int64_t before, size_t limit, int64_t* next) const {
  const absl::Time now = WallNow();
  std::vector<FactorInfo> infos;
  infos.reserve(limit);
  MutexLock lock(&store_.mutex());
  for (const Entry* entry : handles_.List(tenant, name, before, limit, next)) {
    if (now >= entry->end() || TieredStore::IsLost(*entry->stored)) continue;  // not removed yet
    infos.push_back(Info(*entry, *entry->stored, now));
  }
  return infos;
}

ChargedMemory FactorCache::RemoveEntry(const CachedVersion& version, Removal cause) noexcept {
  const std::unique_ptr<Entry> entry = handles_.Remove(version.handle, cause);
  events_->OnEviction(version.memory->tier, EvictionOf(cause));
  request_ids_.Remove(entry->tenant, entry->request_id, entry->handle);
  ChargedMemory freed = store_.Detach(*entry->stored);
  freed.version = std::move(entry->stored);
  return freed;
}

void FactorCache::RemoveEnded(const DeviceSlot* slot) {
  const absl::Time now = WallNow();
  while (true) {
    std::vector<ChargedMemory> freed = SweepSome(now);
    if (freed.empty()) break;
    Free(std::move(freed), slot);
  }
  for (const auto& device : pool_->slots()) {
    const bool is_lost = !device->device->healthy();
    if (is_lost) Free(SweepLostDevice(*device), slot);
    Free(store_.TakeCopies(
             *device,
             [is_lost](const CachedVersion& copy) { return is_lost || copy.original == nullptr; }),
         slot);
  }
}

std::vector<ChargedMemory> FactorCache::SweepSome(absl::Time now) {
  constexpr size_t kBatch = 256;  // limits the time for which calls wait for the mutex
  std::vector<ChargedMemory> freed;
  freed.reserve(kBatch);
  MutexLock lock(&store_.mutex());
  while (freed.size() < kBatch) {
    const Entry* const ended = handles_.FirstEnded(now);
    if (ended == nullptr) break;
    freed.push_back(RemoveEntry(*ended->stored, Removal::kExpired));
  }
  return freed;
}

std::vector<ChargedMemory> FactorCache::SweepLostDevice(DeviceSlot& slot) {
  std::vector<ChargedMemory> freed;
  MutexLock lock(&store_.mutex());
  // Host memory also has the versions of other devices.
  const auto& versions = store_.MemoryOf(slot).versions;
  const auto is_of_slot = [&](const CachedVersion* version) {
    return version->slot == &slot && version->resident;
  };
  freed.reserve(std::count_if(versions.begin(), versions.end(), is_of_slot));
  for (auto next = versions.begin(); next != versions.end();) {
    CachedVersion& version = **next++;  // RemoveEntry() and Rescue() unlink it.
    if (!is_of_slot(&version)) continue;
    if (TieredStore::IsLost(version)) {
      freed.push_back(RemoveEntry(version, Removal::kDeviceLost));
    } else if (auto parts = store_.Rescue(version)) {
      freed.push_back(*std::move(parts));
    }
  }
  return freed;
}

void FactorCache::Free(std::vector<ChargedMemory> freed, const DeviceSlot* slot) {
  for (ChargedMemory& charged : freed) {
    DeviceSlot* const other = charged.slot;
    if (other == nullptr || other == slot) {
      const ChargedMemory here = std::move(charged);
    } else {
      other->releasing->Schedule([there = std::move(charged)] {});
    }
  }
}

size_t FactorCache::size() const {
  MutexLock lock(&store_.mutex());
  return handles_.size();
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
DeviceSlot& FactorCache::Pin::home() const {
  return stored_->home != nullptr ? *stored_->home : slot();
}

bool FactorCache::Pin::has_matrix() const { return stored_->has_matrix; }
bool FactorCache::Pin::durable() const { return stored_->durable; }

size_t FactorCache::Pin::promotion_bytes() const {
  return cache_->store_.IsResident(*stored_) ? 0 : stored_->bytes;
}

absl::StatusOr<const Factorization*> FactorCache::Pin::OnDevice(ExecutionContext& context,
                                                                Reservation reservation,
                                                                bool* promoted) {
  return cache_->store_.MakeResident(*stored_, context, std::move(reservation), promoted);
}

absl::StatusOr<bool> FactorCache::Pin::ReadOnHost(TieredStore::ReadParts read) {
  return cache_->store_.ReadIfOnHost(*stored_, read);
}

void FactorCache::Unpin(std::shared_ptr<CachedVersion> stored) noexcept {
  const absl::Time now = WallNow();
  ChargedMemory freed;
  MutexLock lock(&store_.mutex());
  // A use of an old version also counts as a use of the handle.
  if (Entry* const entry = handles_.Find(stored->handle); entry != nullptr) {
    handles_.Reschedule(*entry, [&] {
      --entry->uses;
      entry->lease_expire_time = entry->LeaseFrom(now);
    });
  }
  freed = store_.Unpin(*stored);
}

absl::StatusOr<FactorCache::Pin> AcquireSingle(FactorCache& cache, const std::string& tenant,
                                               const Handle& handle) {
  CROUT_ASSIGN_OR_RETURN(FactorCache::Pin pin, cache.Acquire(tenant, handle));
  if (pin.summary().kind() != FactorKind::kBatch) return pin;
  return absl::FailedPreconditionError(
      "the handle belongs to a batch, and only Solve, Refactorize and GetFactors accept batches: "
      "send the handle of a single matrix");
}

absl::Status CheckDeviceOf(const std::string& device, const FactorCache::Pin& factor,
                           absl::string_view field) {
  const std::string& device_name = factor.slot().device->info().name;
  if (device.empty() || device == device_name) return absl::OkStatus();
  return BadField(
      field, absl::StrCat("the handle's factor is on ", device_name, ": leave the device out"));
}

}  // namespace crout
