// SPDX-License-Identifier: Apache-2.0

// The memory of cached factors: one tier in the memory of each device, and one in host memory.
// Under memory pressure, the store evicts idle versions, least recently used first: from a device
// to host memory, and from host memory altogether. A version that is usable only on its device is
// dropped at once. Versions in use stay where they are. A version in host memory moves back to its
// device when a call needs it there.
#ifndef CROUT_SERVER_ENGINE_CACHE_TIERED_STORE_H_
#define CROUT_SERVER_ENGINE_CACHE_TIERED_STORE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/factorization.h"
#include "kernels/util/mutex.h"
#include "server/engine/admission/memory_budget.h"
#include "server/engine/cache/cache_events.h"
#include "server/engine/cache/iteration_record.h"
#include "server/engine/cache/removal.h"
#include "server/engine/cache/tenant_loads.h"
#include "server/engine/cache/tier.h"
#include "server/engine/scheduling/device_pool.h"

namespace crout {

struct CachedVersion;

// Memory with its reservation. Members are destroyed in reverse order: the memory is free before
// the budget counts it as free.
struct ChargedMemory {
  DeviceSlot* slot = nullptr;  // device of the memory; null: host memory
  Reservation reservation;
  FactorParts parts;
  std::shared_ptr<const IterationRecord> record;
};

// Thread-safe. No operation visits more versions than it returns, moves or removes.
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
  };

  // All arguments outlive the store. `host_memory` allocates the copies of the host tier, which are
  // charged to the pool's host budget.
  TieredStore(DevicePool* pool, MemoryResource* host_memory, CacheEvents* events, Owner* owner);
  TieredStore(const TieredStore&) = delete;  // Its mutex guards other objects.
  TieredStore& operator=(const TieredStore&) = delete;

  // Guards the members of all versions, except where their comments state otherwise. The owner
  // guards its entries by the same mutex, because an entry and its version change together. Never
  // held while bytes are copied.
  Mutex& mutex() const ABSL_LOCK_RETURNED(mutex_) { return mutex_; }

  static Tier TierOf(const CachedVersion& version);
  // Whether a version was lost with its device.
  static bool IsLost(const CachedVersion& version);

  // Protects the version from eviction until Unpin(). A host copy whose device is fenced is
  // assigned to a healthy device first. If the system is out of memory, throws std::bad_alloc and
  // changes nothing.
  void Pin(CachedVersion& version) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The following functions allocate nothing. Destroy the memory that they return without locks.

  // Adds the version of an entry, idle. `account` counts its bytes until Detach().
  void Attach(CachedVersion& version, TenantLoads::Account& account) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes a version. Returns its memory, unless a pin or a move still uses the memory.
  ChargedMemory Detach(CachedVersion& version) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the memory of a detached version after its last pin.
  ChargedMemory Unpin(CachedVersion& version) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Attached versions in the memory of the slot's device.
  const std::list<CachedVersion*>& VersionsOn(const DeviceSlot& slot) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Reserves bytes on the budget of the slot, and evicts idle versions there until they fit, least
  // recently used first. Blocks while factors are copied to host memory, so RPC threads must not
  // call it; they try slot.budget->TryReserve first. Returns RESOURCE_EXHAUSTED if evicting all
  // idle versions would not suffice. This is checked before each eviction.
  absl::StatusOr<Reservation> ReserveOnDevice(DeviceSlot& slot, size_t bytes);
  // Reserves bytes on the host budget. Drops iteration records first, oldest first, and then
  // versions of the host tier. Both functions fail with the reason MEMORY_EXHAUSTED and, unless
  // `bytes` exceeds the whole budget, a retry delay.
  absl::StatusOr<Reservation> ReserveOnHost(size_t bytes);
  // Returns RESOURCE_EXHAUSTED if evicting everything idle on the slot would not make room for
  // `bytes` now.
  absl::Status CheckReachable(DeviceSlot& slot, size_t bytes) const;
  // Bytes that evicting everything idle would free on the slot's budget.
  size_t EvictableBytes(const DeviceSlot& slot) const;

  // The caller has pinned the version. Whether it is in the memory of its device.
  bool IsResident(const CachedVersion& version) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The caller has pinned the version. Moves it into the memory of its device; `*promoted` is set
  // to whether this call moved it. The contract is that of FactorCache::Pin::OnDevice().
  absl::StatusOr<const Factorization*> MakeResident(CachedVersion& version,
                                                    ExecutionContext& context, Reservation room,
                                                    bool* promoted);
  // The caller has pinned the version. The contract is that of FactorCache::Pin::ReadOnHost().
  using ReadParts = absl::FunctionRef<absl::Status(const FactorParts& parts)>;
  absl::StatusOr<bool> ReadIfOnHost(CachedVersion& version, ReadParts read);

  // Attached versions by tier, indexed by Tier.
  std::array<TierState, 2> tiers() const;

 private:
  // The attached versions in one memory.
  struct Memory {
    std::list<CachedVersion*> versions;
    size_t bytes = 0;
    // Idle versions, least recently used first.
    std::list<CachedVersion*> idle;
    size_t idle_bytes = 0;
  };
  // Index of host memory. Device i has the index i + 1.
  static constexpr size_t kHost = 0;

  static size_t MemoryOf(const CachedVersion& version);
  static size_t MemoryOf(const DeviceSlot& slot);

  void AddToMemory(CachedVersion& version) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveFromMemory(CachedVersion& version) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Runs `change`, which changes the memory that the version is in, and updates the lists.
  void Move(CachedVersion& version, absl::FunctionRef<void()> change) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Must be called when the pins, the owner or the memory of a version have changed. Lists the
  // version as idle if nothing uses it. Returns its memory if it cannot be used again.
  ChargedMemory ReleaseIfUnused(CachedVersion& version) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveFromIdle(CachedVersion& version) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Updates DeviceSlot::idle_bytes of the slots that use this memory.
  void PublishIdleBytes(size_t memory) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes the version's iteration record from the records that can be dropped.
  std::shared_ptr<const IterationRecord> RemoveRecord(CachedVersion& version) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::StatusOr<Reservation> Reserve(DeviceSlot* slot, MemoryBudget& budget, size_t memory,
                                      size_t bytes);
  // Drops iteration records until `bytes` are free in the host budget or no record remains. Drops
  // none if that would not suffice even with all idle host versions.
  void DropRecords(size_t bytes);
  // Selects the least recently used idle version of the memory and marks it as moving. Returns null
  // if no version is idle but the free bytes suffice. Returns RESOURCE_EXHAUSTED if evicting all
  // idle versions would not make room for `bytes`.
  absl::StatusOr<std::shared_ptr<CachedVersion>> SelectVictim(DeviceSlot* slot,
                                                              const MemoryBudget& budget,
                                                              size_t memory, size_t bytes);
  void Drop(const std::shared_ptr<CachedVersion>& victim);
  void Demote(const std::shared_ptr<CachedVersion>& victim);
  absl::Status CopyToHost(const CachedVersion& from, ChargedMemory* to, uint64_t* checksum);
  // Verifies the checksum of a host copy. On a mismatch, drops the factor and returns DATA_LOSS.
  // Requires the mutex `promotion` of the version.
  absl::Status CheckHostCopy(CachedVersion& version);

  // Constant after construction.
  DevicePool* const pool_;
  MemoryResource* const host_memory_;
  CacheEvents* const events_;
  Owner* const owner_;
  // One mutex for each memory, held by the call that evicts from it. Another call then waits for
  // the memory that is being freed, instead of finding nothing idle. Lock order: a device's mutex,
  // the host's mutex, mutex_.
  const std::unique_ptr<Mutex[]> pressure_;

  mutable Mutex mutex_;
  std::vector<Memory> memories_ ABSL_GUARDED_BY(mutex_);
  // Versions with an iteration record, oldest first.
  std::list<CachedVersion*> records_ ABSL_GUARDED_BY(mutex_);
  size_t record_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // bytes charged for them
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_TIERED_STORE_H_
