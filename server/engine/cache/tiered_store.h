// SPDX-License-Identifier: Apache-2.0

// The memory of cached factors: one tier in the memory of each device, one in host memory, and one
// in files if the server has a store. Under pressure, idle versions are evicted. A version on a
// device moves to host memory, or is dropped if it is usable only on its device. A version in host
// memory moves to a file, or is dropped if that is not possible. A version in a file is dropped.
// Durable versions always have a file and are not dropped. Versions in use stay where they are. A
// version that is not on its device moves back when a call needs it there.
//
// Each tenant has a share of each memory (memory_shares.h). Eviction takes from the tenant furthest
// above its share, least recently used versions first. The requested bytes count for the tenant
// that needs them, so its own versions go first if they would take it furthest above. A tenant at
// or below its share loses no version: the request is refused instead.
//
// A version for which solves wait on a GPU is copied to idle GPUs of the same model (decision
// 0079). Copies use only free memory. They are dropped before any version is evicted from their
// memory, and when their original leaves its device.
#ifndef CROUT_SERVER_ENGINE_CACHE_TIERED_STORE_H_
#define CROUT_SERVER_ENGINE_CACHE_TIERED_STORE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/factorization.h"
#include "kernels/util/mutex.h"
#include "server/engine/admission/memory_budget.h"
#include "server/engine/cache/cache_events.h"
#include "server/engine/cache/cached_version.h"
#include "server/engine/cache/charged_memory.h"
#include "server/engine/cache/memory_shares.h"
#include "server/engine/cache/removal.h"
#include "server/engine/cache/tenant_loads.h"
#include "server/engine/cache/tier_copier.h"
#include "server/engine/cache/tier_memory.h"
#include "server/engine/scheduling/device_pool.h"

namespace crout {

// Thread-safe. No operation visits more versions than it returns, moves or removes, except sweeps
// after the loss of an out-of-core device, and visits of the copies in a memory. A reservation also
// visits the shares of tenants that exceed theirs.
class TieredStore {
 public:
  // Owns the entries whose versions are in the store.
  class Owner {
   public:
    virtual ~Owner() = default;
    // Removes entries that have ended. Memory of `slot`'s device is free on return; a null `slot`
    // frees host memory. Called without locks.
    virtual void RemoveEnded(const DeviceSlot* slot) = 0;
    // Removes the entry of a version and detaches the version. Called with mutex() held. Returns
    // the result of Detach().
    virtual ChargedMemory RemoveEntry(const CachedVersion& version, Removal cause) noexcept = 0;
    // Describes an attached version for its file. Returns nullopt for an internal entry. Called
    // with mutex() held.
    virtual std::optional<FactorRecord> RecordOf(const CachedVersion& version) const = 0;
  };

  // All arguments outlive the store. `host_memory` allocates the copies of the host tier, which are
  // charged to the pool's host budget. `loads` holds the shares of the tenants; no other store may
  // use it. `quotas` limits them. `max_pinned_bytes` limits the pinned bytes of one tenant; 0: a
  // quarter of all memory budgets. `files` may be null: evicted versions are then not written to
  // files.
  TieredStore(DevicePool* pool, MemoryResource* host_memory, CacheEvents* events,
              TenantLoads* loads, const Quotas* quotas, Owner* owner, size_t max_pinned_bytes,
              FactorStore* files);
  ~TieredStore();
  TieredStore(const TieredStore&) = delete;  // Its mutex guards other objects.
  TieredStore& operator=(const TieredStore&) = delete;

  // Guards the members of all versions, except where their comments state otherwise. The owner
  // guards its entries by the same mutex, because an entry and its version change together. Never
  // held while bytes are copied.
  Mutex& mutex() const ABSL_LOCK_RETURNED(mutex_) { return mutex_; }

  // Returns the memory of the slot's device. A new version is in it.
  TierMemory& MemoryOf(const DeviceSlot& slot) { return memories_[IndexOf(slot)]; }
  const TierMemory& MemoryOf(const DeviceSlot& slot) const { return memories_[IndexOf(slot)]; }
  // Largest number of bytes of a tenant's pinned versions.
  size_t max_pinned_bytes() const { return max_pinned_bytes_; }
  // Returns RESOURCE_EXHAUSTED if the version may not be pinned. Reason PIN_LIMIT: its tenant, to
  // which `account` belongs, would have more than max_pinned_bytes() pinned, or more than half of
  // the budget of the version's memory or device would be pinned. QUOTA_EXCEEDED: the quota
  // pinned_bytes. `replaced` may be null; a pinned version there no longer counts.
  absl::Status CheckPinnable(const CachedVersion& version, const TenantLoads::Account& account,
                             const CachedVersion* replaced) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Pins or unpins an attached version. A pinned version is neither evicted nor moved below.
  // Requires CheckPinnable().
  void SetPinned(CachedVersion& version, bool pinned) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns QUOTA_EXCEEDED if the tenant of `account` has as many factors as it may have.
  absl::Status CheckFactors(const TenantLoads::Account& account) const;
  // Returns true if the version was lost with its device. A version with a file is not lost.
  static bool IsLost(const CachedVersion& version);
  // Replaces the parts of a version whose device is fenced by its file, if it has one and no pin.
  // Returns the parts.
  std::optional<ChargedMemory> Rescue(CachedVersion& version) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Writes a factor to a file before it is attached as a durable version. Blocks. Errors are those
  // of FactorCache::StoreForInsert(). After an error, *overdue may be a write that uses the parts.
  absl::StatusOr<UnclaimedFile> WriteFile(const FactorRecord& record, DeviceSlot& slot,
                                          const FactorParts& parts,
                                          std::shared_ptr<OverdueWrite>* overdue);
  // Returns the memory of versions in files. Requires that there are files.
  TierMemory& file_memory() { return memories_.back(); }

  // Opens an account of a tenant for Attach(); an empty name gives an account of no tenant. Throws
  // std::bad_alloc if the system is out of memory, and then changes nothing.
  TenantLoads::Account OpenAccount(std::string_view tenant) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Protects the version from eviction until Unpin(). A host copy whose device is fenced is
  // assigned to a healthy device first. If the system is out of memory, throws std::bad_alloc and
  // changes nothing.
  void Pin(CachedVersion& version) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The following functions allocate nothing. Destroy the memory that they return without holding
  // locks.

  // Adds the version of an entry, idle. `account`, from OpenAccount(), counts its bytes until
  // Detach().
  void Attach(CachedVersion& version, TenantLoads::Account& account) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes a version. Returns its memory, unless a pin or a move still uses the memory.
  ChargedMemory Detach(CachedVersion& version) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes all versions, which are not pinned, before their entries are destroyed. Their files
  // remain.
  void DetachAll() noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes a pin. Returns the memory if this was the last pin of a detached version.
  ChargedMemory Unpin(CachedVersion& version) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Reserves bytes from the budget of the slot, for a call of `tenant`, whose share they count in.
  // Evicts idle versions there until the bytes fit, in the order described above. An empty `tenant`
  // may evict all idle versions. Blocks while factors are copied to host memory; on a thread of the
  // transport, call TryReserve() of OwnerOn() instead. Returns RESOURCE_EXHAUSTED if evicting all
  // versions that `tenant` may evict would not suffice. This is checked before each eviction. A
  // refused tenant gets the memory before tenants above their shares if it tries again after the
  // retry delay.
  absl::StatusOr<Reservation> ReserveOnDevice(DeviceSlot& slot, size_t bytes,
                                              std::string_view tenant);
  // Reserves bytes from the host budget. Drops iteration records first, oldest first, and then
  // versions of the host tier.
  //
  // Errors of both functions have the reason MEMORY_EXHAUSTED and, unless `bytes` exceeds the whole
  // budget, a retry delay; or the reason QUOTA_EXCEEDED and, if waiting helps, a retry delay.
  absl::StatusOr<Reservation> ReserveOnHost(size_t bytes, std::string_view tenant);
  // Returns RESOURCE_EXHAUSTED if `bytes` would not fit now even if all versions on the slot that
  // `tenant` may evict were evicted.
  absl::Status CheckReachable(DeviceSlot& slot, size_t bytes, std::string_view tenant);
  // Returns the bytes of the slot's budget in idle versions that `tenant` may evict.
  size_t EvictableBytes(DeviceSlot& slot, std::string_view tenant);
  // Return the owner with which a call of `tenant` reserves free bytes from the budget of the slot
  // or of host memory. Null for an empty tenant.
  std::shared_ptr<ReservationOwner> OwnerOnDevice(DeviceSlot& slot, std::string_view tenant) {
    return OwnerOf(MemoryOf(slot), tenant);
  }
  std::shared_ptr<ReservationOwner> OwnerOnHost(std::string_view tenant,
                                                ShareUse use = ShareUse::kJob) {
    return OwnerOf(host(), tenant, use);
  }
  // Reserves host memory for the entry of a version that will have a file.
  absl::StatusOr<Reservation> ReserveEntry(std::string_view tenant) {
    return Reserve(/*slot=*/nullptr, host(), CachedVersion::kEntryBytes,
                   OwnerOf(host(), tenant, ShareUse::kCopy), tenant);
  }
  // Returns the owner of a tenant's files. Requires that there are files.
  std::shared_ptr<ReservationOwner> OwnerOfFiles(std::string_view tenant) {
    return OwnerOf(file_memory(), tenant);
  }
  // Ends the keeping of memory for tenants that have not needed it for a while. Call it every
  // second.
  void EndKeeping();

  // Returns true if the version is in the memory of its device. Requires a pin of the version.
  bool IsResident(const CachedVersion& version) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Moves the version into the memory of its device, as FactorCache::Pin::OnDevice() documents.
  // Requires a pin of the version.
  absl::StatusOr<const Factorization*> MakeResident(CachedVersion& version,
                                                    ExecutionContext& context,
                                                    Reservation reservation, bool* promoted);
  // Reads the parts, as FactorCache::Pin::ReadOnHost() documents. Requires a pin of the version.
  using ReadParts = TierCopier::ReadParts;
  absl::StatusOr<bool> ReadIfOnHost(CachedVersion& version, ReadParts read);

  // Returns the version or the copy of it whose device is predicted to start a solve first. Sets
  // `*target` to a device to which another copy is worthwhile now, or leaves it unchanged.
  CachedVersion& ChooseCopy(CachedVersion& version, DeviceSlot** target)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Copies the version to the device of `target`, on a thread of this device. Does nothing if
  // another copy is in progress, or if the version has left its device.
  void StartCopy(std::shared_ptr<CachedVersion> version, DeviceSlot& target)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes the copies in the memory of the slot's device that `chosen` accepts, which is called
  // with mutex() held. Returns the memory of those that no call uses.
  std::vector<ChargedMemory> TakeCopies(const DeviceSlot& slot,
                                        absl::FunctionRef<bool(const CachedVersion& copy)> chosen)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the number and the bytes of all copies.
  TierState copies() const;

  // Returns the number and the bytes of the attached versions.
  TierStates tiers() const;
  // Returns the bytes of the pinned versions.
  size_t pinned_bytes() const;

 private:
  class CopyTask;
  using CopyList = std::list<std::shared_ptr<CachedVersion>>;

  // Describes a request for which `room` is too small.
  static absl::Status ExhaustedStatus(const DeviceSlot* slot, size_t bytes,
                                      const MemoryBudget& budget, const ShareRoom& room);

  // Index in memories_ of the memory of the slot's device.
  static size_t IndexOf(const DeviceSlot& slot) {
    return slot.on_host() ? 0 : static_cast<size_t>(slot.index) + 1;
  }
  TierMemory& host() { return memories_.front(); }

  // Returns true if the bytes of the version, when it is pinned, count in `memory`: the memory of
  // the version, or of its device, to which the next use moves it.
  bool CountsIn(const CachedVersion& version, const TierMemory& memory) const {
    return &memory == version.memory || &memory == &MemoryOf(*version.slot);
  }
  // Adds the bytes of the version, or subtracts them for `sign` -1, if it is pinned and attached.
  void CountPinned(const CachedVersion& version, int sign) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddToMemory(CachedVersion& version) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveFromMemory(CachedVersion& version) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds what a version with a file has in host memory beside its parts, or subtracts it for `sign`
  // -1.
  void CountBesideFile(const CachedVersion& version, int sign) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves the version to the memory `to`. Exchanges its reservation and parts with those of `copy`.
  // Takes the file of `copy`, or gives it the file that the version no longer needs.
  void Move(CachedVersion& version, TierMemory& to, ChargedMemory& copy) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Call it after the pins, the account or the memory of a version have changed. Lists the version
  // as idle if nothing uses it. Returns its memory if it cannot be used again.
  ChargedMemory ReleaseIfUnused(CachedVersion& version) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveFromIdle(CachedVersion& version) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Updates DeviceSlot::idle_bytes of the slots that use this memory.
  void PublishIdleBytes(const TierMemory& memory) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes the version's iteration record from the records that can be dropped.
  std::shared_ptr<const IterationRecord> RemoveRecord(CachedVersion& version) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  TenantShare& ShareOf(const CachedVersion& version) const {
    return *version.account->share(version.memory->index);
  }
  std::shared_ptr<ShareOwner> OwnerOf(TierMemory& memory, std::string_view tenant,
                                      ShareUse use = ShareUse::kJob);
  // Returns RESOURCE_EXHAUSTED if the memory has no room for the request.
  absl::Status CheckRoom(const DeviceSlot* slot, TierMemory& memory, const ShareRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // `slot` is the slot of the job that needs the bytes; null: it needs them in host memory.
  // Evictions are charged to `tenant`, for whose call they are; `owner` may count for another one.
  absl::StatusOr<Reservation> Reserve(DeviceSlot* slot, TierMemory& memory, size_t bytes,
                                      std::shared_ptr<ShareOwner> owner, std::string_view tenant);
  // Drops the copies in the memory of a device, or only those of the request's tenant if its quota
  // is exceeded. Drops none if the request would not fit without the copies.
  void DropCopies(TierMemory& memory, const ShareRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);
  // Drops iteration records until the bytes are free in the host budget or no record remains. Drops
  // none if that would not suffice even with all versions that the request may evict.
  void DropRecords(const ShareRequest& request);
  // Selects the version that the request evicts next and marks it as moving. Returns null if there
  // is none but the free bytes suffice. Returns RESOURCE_EXHAUSTED if evicting all versions that
  // the request may evict would not make room for it.
  absl::StatusOr<std::shared_ptr<CachedVersion>> SelectVictim(const DeviceSlot* slot,
                                                              TierMemory& memory,
                                                              const ShareRequest& request);
  // Removes the entry of a selected version, unless the version was used in the meantime. This and
  // the following functions work for a call of `tenant`, which needs the memory.
  void Drop(const std::shared_ptr<CachedVersion>& victim, std::string_view tenant);
  // Moves a selected version to the memory `below`, unless it was used in the meantime. Removes its
  // entry if the copy fails.
  void Demote(const std::shared_ptr<CachedVersion>& victim, TierMemory& below,
              std::string_view tenant);
  absl::StatusOr<ChargedMemory> CopyBelow(CachedVersion& from, TierMemory& below,
                                          std::string_view tenant) ABSL_LOCKS_EXCLUDED(mutex_);
  // Detaches the copies of a version that leaves its device or ends. TakeCopies() frees them.
  void EndCopies(CachedVersion& version) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Runs on a thread of the target, with a pin of `version`.
  void RunCopy(CachedVersion& version, DeviceSlot& target) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns a list of one copy, or an empty one if the version was removed. RESOURCE_EXHAUSTED if
  // memory is short.
  absl::StatusOr<CopyList> MakeCopy(const CachedVersion& version, DeviceSlot& target)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends StartCopy(): removes its pin of `version`, and adds the copy in the list, which took
  // `seconds`, if there is one and the device of `version` was not lost.
  void EndCopy(CachedVersion& version, CopyList copy, double seconds = 0)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns RESOURCE_EXHAUSTED if versions in files would keep too much host memory charged with
  // `bytes` more.
  absl::Status CheckBytesBesideFiles(size_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Calls `copy` for a version that is not on its device. If the copy in host memory is corrupt and
  // the version has a file, calls it again for the file. Drops the factor if no copy is intact, and
  // returns DATA_LOSS. Requires the mutex `promotion` of the version.
  absl::Status FromCopy(
      CachedVersion& version,
      absl::FunctionRef<absl::Status(TierCopier& copier, std::string_view tenant)> copy)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Constant after construction.
  DevicePool* const pool_;
  CacheEvents* const events_;
  TenantLoads* const loads_;
  const Quotas* const quotas_;
  Owner* const owner_;
  // Host memory, then the memory of each device, then the files if there are any.
  std::deque<TierMemory> memories_;
  size_t max_pinned_bytes_;

  mutable Mutex mutex_;
  // Versions with an iteration record, oldest first.
  std::list<CachedVersion*> records_ ABSL_GUARDED_BY(mutex_);
  size_t record_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // bytes charged for them
  size_t pinned_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_copying_ ABSL_GUARDED_BY(mutex_) = false;  // from StartCopy() to EndCopy()
  // Sum of bytes_beside_file of the attached versions with files.
  size_t bytes_beside_files_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_TIERED_STORE_H_
