// SPDX-License-Identifier: Apache-2.0

// The cache of factors: handles, leases, versions and pins. HandleTable stores the handles,
// TieredStore the memory of the factors, and RequestIds the ids of requests. Each factor has a
// Reservation, which charges it to the budget of its tier.
//
// A lease has a length and starts again at the end of each use. It does not expire while a pin of
// the handle is held. The life of a factor is counted from its creation and ends even if the factor
// is in use.
//
// No operation visits more entries than it returns, moves or removes.
#ifndef CROUT_SERVER_ENGINE_CACHE_FACTOR_CACHE_H_
#define CROUT_SERVER_ENGINE_CACHE_FACTOR_CACHE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "kernels/factorization.h"
#include "kernels/util/mutex.h"
#include "server/engine/cache/analysis_store.h"
#include "server/engine/cache/cache_events.h"
#include "server/engine/cache/cached_version.h"
#include "server/engine/cache/handle.h"
#include "server/engine/cache/handle_table.h"
#include "server/engine/cache/request_ids.h"
#include "server/engine/cache/tenant_loads.h"
#include "server/engine/cache/tiered_store.h"
#include "server/engine/request.h"
#include "server/engine/scheduling/device_pool.h"
#include "server/engine/store/factor_store.h"

namespace crout {

// A copy of the properties of a cached factor at one moment.
struct FactorInfo {
  Handle handle;
  std::string tenant;
  std::string name;
  int64_t version = 1;
  FactorSummary summary;  // without iteration counts, which are in `record`
  // Null if there are no iteration counts, or if they were dropped under memory pressure.
  std::shared_ptr<const IterationRecord> record;
  std::string device;
  std::optional<int64_t> nnz;
  bool has_matrix = false;
  bool pinned = false;   // protected from eviction
  bool durable = false;  // on disk
  Tier tier = Tier::kDevice;
  size_t bytes = 0;
  absl::Time create_time;
  absl::Time lease_expire_time;  // for a factor in use: as if the use ended now
  CallTimings timings;
};

// The file of a factor that is not yet in the cache.
struct WrittenFactor {
  Handle handle;
  int64_t version = 1;
  absl::Time create_time;  // creation of the handle
  Reservation entry;       // see CachedVersion::file_entry
  UnclaimedFile file;
};

// A factorization to be inserted into the cache.
struct NewFactor {
  // Reservation of FactorCache::Charge() bytes on slot->budget. Members are destroyed in reverse
  // order: the memory is free before the budget counts it as free.
  Reservation reservation;
  Factorization factorization;  // in the memory of slot->device
  DeviceSlot* slot = nullptr;
  std::shared_ptr<const IterationRecord> record;  // from ExtractRecord()
  std::optional<int64_t> nnz;
  CallTimings timings;
  // Set by FactorCache::StoreForInsert() and StoreForReplace().
  std::optional<WrittenFactor> written = std::nullopt;
};

// Thread-safe.
class FactorCache : private TieredStore::Owner {
  using Entry = HandleTable::Entry;

 public:
  // Bytes charged for the entry itself and its names, in addition to its factor. Without this
  // charge, many small or empty factors could fill the memory uncounted.
  static constexpr size_t kEntryBytes = CachedVersion::kEntryBytes;
  // Bytes charged for a factor with this many bytes of storage.
  static constexpr size_t Charge(size_t storage_bytes) { return storage_bytes + kEntryBytes; }

  // Keeps one version of a factor alive and in its memory. Move-only. May be destroyed on any
  // thread, without blocking. The cache outlives its pins.
  class Pin {
   public:
    Pin(Pin&& other) noexcept;
    Pin& operator=(Pin&& other) noexcept;
    ~Pin();

    const FactorSummary& summary() const;
    int64_t version() const;
    DeviceSlot& slot() const;
    // Returns slot(), or, for a copy, the slot of its original.
    DeviceSlot& home() const;
    bool has_matrix() const;
    bool durable() const;
    // Bytes to reserve on the device before OnDevice(). 0 unless the version is in host memory at
    // this moment.
    size_t promotion_bytes() const;
    // Returns the factorization in its device's memory, and moves it there first if necessary.
    // Blocks; call it on worker threads only. `context` belongs to slot().device. `reservation`
    // covers promotion_bytes(); it is released if it is not needed. Sets `*promoted` to
    // true if this call moved the factor, else to false. The result is valid while the pin lives.
    //
    // Errors: DATA_LOSS if the checksum of the host copy is wrong (the factor is dropped then);
    // RESOURCE_EXHAUSTED if `reservation` is too small or the device is out of memory.
    absl::StatusOr<const Factorization*> OnDevice(ExecutionContext& context,
                                                  Reservation reservation, bool* promoted);

    // Calls `read` once with the parts of the factorization if they are in host memory at this
    // moment. Returns false if they are on the device, where they stay while the pin lives. Blocks,
    // also while OnDevice() moves this version, but needs no device itself. Returns DATA_LOSS under
    // the conditions of OnDevice(), and errors of `read`.
    absl::StatusOr<bool> ReadOnHost(TieredStore::ReadParts read);

   private:
    friend class FactorCache;
    Pin(FactorCache* cache, std::shared_ptr<CachedVersion> stored);

    FactorCache* cache_;
    std::shared_ptr<CachedVersion> stored_;  // null after a move
  };

  // All arguments outlive the cache. `host_memory` allocates the copies of the host tier, which are
  // charged to the pool's host budget. `loads` counts each tenant's entries, and their bytes by
  // tier; no other cache may use it. `quotas` limits both. `max_pinned_bytes` is TieredStore's.
  // `files` may be null: the server then has no store. Leases use WallNow(). The files of factors
  // remain when the cache ends. DevicePool::Stop() must run before the cache ends, because tasks of
  // the pool free memory that is charged to the tenants of the cache.
  FactorCache(DevicePool* pool, MemoryResource* host_memory, CacheEvents* events,
              TenantLoads* loads, const Quotas* quotas, size_t max_pinned_bytes,
              FactorStore* files = nullptr);
  ~FactorCache() override;
  FactorCache(const FactorCache&) = delete;  // Pins point to it.
  FactorCache& operator=(const FactorCache&) = delete;

  // If the system is out of memory, Insert, Replace, Acquire, Renew, Release and ClaimRequest throw
  // std::bad_alloc and leave the cache unchanged.

  // Adds a factor. Completes the claim of options.request_id, if there is one. Returns
  // RESOURCE_EXHAUSTED if the factor may not be pinned (TieredStore::CheckPinnable), or if the
  // tenant has as many factors as it may have (TieredStore::CheckFactors). A durable factor
  // requires StoreForInsert().
  absl::StatusOr<FactorInfo> Insert(NewFactor factor, const InsertOptions& options);

  // Returns the living factor of a request_id. If there is none, claims the id and returns nullopt.
  // ABORTED (reason REQUEST_IN_PROGRESS, with a retry delay) while another call holds the claim. A
  // claim ends with Insert() or request_ids().Abandon().
  absl::StatusOr<std::optional<FactorInfo>> ClaimRequest(std::string_view tenant,
                                                         std::string_view request_id);
  RequestIds& request_ids() { return request_ids_; }

  // Stores the next version of a handle, atomically. Calls that have pinned the old version
  // continue to use it. A pinned handle stays pinned. Returns NOT_FOUND under the conditions of
  // Acquire, and RESOURCE_EXHAUSTED like Insert. A durable handle requires StoreForReplace(); if
  // the handle has a later version by now, the new version counts as replaced by that one.
  absl::StatusOr<FactorInfo> Replace(std::string_view tenant, const Handle& handle,
                                     NewFactor factor);

  // Returns FAILED_PRECONDITION about `field` if the server has no store, and UNAVAILABLE (reason
  // STORE_FAILED, with a retry delay) while the store refuses writes of the tenant.
  absl::Status CheckDurable(absl::string_view field, std::string_view tenant) const;
  // Writes the factor to a file, before Insert() with these options or before Replace(). Does
  // nothing unless the options ask for a durable factor, or the handle has one. Blocks; call it
  // without locks.
  //
  // Errors: UNAVAILABLE (reason STORE_FAILED, with a retry delay) if the disk failed;
  // RESOURCE_EXHAUSTED (reason STORE_FULL, or MEMORY_EXHAUSTED for the copy in host memory);
  // FAILED_PRECONDITION if the factor is usable only on its device. Replace() reports that a handle
  // is gone.
  absl::Status StoreForInsert(NewFactor& factor, const InsertOptions& options);
  absl::Status StoreForReplace(NewFactor& factor, std::string_view tenant, const Handle& handle);
  // Adds factors that were found in the store. Their leases start again. Files stay in the store
  // without an entry if no device is of the kind of the device that made the factor, or
  // if memory is short. Factors of one tenant with equal analyses share one, which later calls find
  // in `analyses`.
  void Restore(std::vector<FoundFactor> found, AnalysisStore& analyses);
  // Removes the factors with files in a folder that this process has lost. Other factors of the
  // folder belong to FactorStore::home() from now on. Visits all factors.
  void DropFolder(const std::string& folder);

  // Returns the folders of all factors. Visits all factors.
  std::set<std::string> Folders() const;

  // Pins the current version of a handle, counts a hit or a miss, and marks the factor as used. A
  // factor in host memory whose device was fenced is assigned to a healthy device.
  //
  // Returns NOT_FOUND for a handle that is unknown, expired, evicted, released or owned by another
  // tenant. The status for the owner states the cause with the reason HANDLE_EXPIRED,
  // HANDLE_EVICTED, HANDLE_RELEASED, DEVICE_LOST or DATA_LOSS. For other tenants the reason is
  // always HANDLE_UNKNOWN. A handle of another process has the reason SERVER_RESTARTED. Returns
  // UNAVAILABLE (reason STORE_FAILED, with a retry delay) for a factor with a file while another
  // process may own its folder.
  absl::StatusOr<Pin> Acquire(std::string_view tenant, const Handle& handle);
  // The same for a call that only solves: pins the factor or a copy of it on another device,
  // whichever device is predicted to start the solve first (TieredStore::ChooseCopy).
  absl::StatusOr<Pin> AcquireToSolve(std::string_view tenant, const Handle& handle);

  // Returns the properties of a factor. Does not count as a use. NOT_FOUND under the conditions of
  // Acquire.
  absl::StatusOr<FactorInfo> Describe(std::string_view tenant, const Handle& handle) const;
  // Sets the length of the lease (nullopt: leaves it unchanged) and restarts the lease now, limited
  // by the factor's life. kLengthen never shortens the lease: it leaves a longer length or a later
  // end unchanged. NOT_FOUND under the conditions of Acquire. Pins or unpins the factor if `pin` is
  // set; RESOURCE_EXHAUSTED like Insert, and then nothing changes.
  absl::StatusOr<FactorInfo> Renew(std::string_view tenant, const Handle& handle,
                                   std::optional<absl::Duration> lease,
                                   Renewal renewal = Renewal::kReplace,
                                   std::optional<bool> pin = std::nullopt);
  // Removes a factor. Calls that have pinned it continue to use it. NOT_FOUND under the conditions
  // of Acquire.
  absl::Status Release(std::string_view tenant, const Handle& handle);

  // Lists at most `limit` factors, newest first, that were created before the position `before` (0:
  // from the newest). `*next` is the value of `before` that continues the list, or 0 at the end. An
  // empty `name` lists all factors. The result may have fewer than `limit` factors although more
  // follow, because expired and lost factors are skipped.
  std::vector<FactorInfo> List(std::string_view tenant, std::string_view name, int64_t before,
                               size_t limit, int64_t* next) const;

  // Reserve memory for jobs and factors, and evict idle factors if necessary. TieredStore documents
  // these functions.
  absl::StatusOr<Reservation> ReserveOnDevice(DeviceSlot& slot, size_t bytes,
                                              std::string_view tenant = {}) {
    return store_.ReserveOnDevice(slot, bytes, tenant);
  }
  absl::StatusOr<Reservation> ReserveOnHost(size_t bytes, std::string_view tenant = {}) {
    return store_.ReserveOnHost(bytes, tenant);
  }
  std::shared_ptr<ReservationOwner> OwnerOnDevice(DeviceSlot& slot, std::string_view tenant) {
    return store_.OwnerOnDevice(slot, tenant);
  }
  std::shared_ptr<ReservationOwner> OwnerOnHost(std::string_view tenant,
                                                ShareUse use = ShareUse::kJob) {
    return store_.OwnerOnHost(tenant, use);
  }
  absl::Status CheckReachable(DeviceSlot& slot, size_t bytes, std::string_view tenant) {
    return store_.CheckReachable(slot, bytes, tenant);
  }
  size_t EvictableBytes(DeviceSlot& slot, std::string_view tenant = {}) {
    return store_.EvictableBytes(slot, tenant);
  }
  // Returns QUOTA_EXCEEDED if Insert() would refuse another factor of the tenant now.
  absl::Status CheckFactors(const TenantLoads::Account& account) const {
    return store_.CheckFactors(account);
  }
  // Limit of the pinned bytes of one tenant.
  size_t max_pinned_bytes() const { return store_.max_pinned_bytes(); }

  // Returns the folder of the store that has, or would have, the files of the tenant's factor.
  // Empty for an unknown handle, for one of another tenant, and without a store.
  std::string FolderOf(std::string_view tenant, const Handle& handle) const;

  // Returns the device of the factor, whose memory is freed when the factor ends. Returns NOT_FOUND
  // under the conditions of Acquire.
  absl::StatusOr<DeviceSlot*> SlotOf(std::string_view tenant, const Handle& handle) const;

  // Removes expired factors, and factors of fenced devices that have no host copy. Does not wait
  // for a device: a device's own threads free its memory. The daemon calls this every second.
  void Sweep() {
    RemoveEnded(/*slot=*/nullptr);
    store_.EndKeeping();
  }

  // Returns the contents of the tiers, indexed by Tier. Does not include replaced and released
  // versions that calls still use.
  TierStates tiers() const { return store_.tiers(); }
  // Returns the number and the bytes of copies on other devices, which tiers() does not include.
  TierState copies() const { return store_.copies(); }
  size_t pinned_bytes() const { return store_.pinned_bytes(); }
  // Returns nothing if the server has no store.
  std::optional<StoreState> store_state() const {
    return files_ == nullptr ? std::nullopt : std::optional(files_->state());
  }
  size_t size() const;

 private:
  // Analyses by tenant and FoundFactor::analysis_id.
  using RestoredAnalyses =
      std::map<std::pair<std::string, std::string>, std::weak_ptr<const Analysis>>;

  std::shared_ptr<CachedVersion> MakeVersion(NewFactor factor);
  // Adds one factor of Restore(). `restored` has the analyses of the factors before it. Leaves the
  // file in `found` if it returns an error: DATA_LOSS if the file is damaged, NOT_FOUND if the
  // factor's life has ended.
  absl::Status RestoreOne(FoundFactor& found, AnalysisStore& analyses, RestoredAnalyses& restored);
  // Returns the analysis of a sparse factor from `restored`, or reads and adds the analysis.
  absl::StatusOr<std::shared_ptr<const Analysis>> RestoreAnalysis(const FoundFactor& found,
                                                                  AnalysisStore& analyses,
                                                                  RestoredAnalyses& restored);
  // Writes `factor` to a file. `record` has its handle, its version and the fields of its entry.
  absl::Status WriteFile(FactorRecord record, NewFactor& factor);
  // Returns the entry if the handle belongs to the tenant and is alive at `now`. Otherwise returns
  // NOT_FOUND and sets `*miss` to the cause. An entry that was lost with its device counts as
  // removed.
  absl::StatusOr<Entry*> Find(std::string_view tenant, const Handle& handle, absl::Time now,
                              CacheMiss* miss) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_.mutex());
  // Implements Acquire(). choose(version) returns the version or a copy of it.
  using ChooseVersion = absl::FunctionRef<CachedVersion&(CachedVersion& version)>;
  absl::StatusOr<Pin> AcquireVersion(std::string_view tenant, const Handle& handle,
                                     ChooseVersion choose);
  // Returns the properties of the entry with the version `stored`, its current or its next one.
  static FactorInfo Info(const Entry& entry, const CachedVersion& stored, absl::Time now);
  void Unpin(std::shared_ptr<CachedVersion> stored) noexcept ABSL_LOCKS_EXCLUDED(store_.mutex());

  // TieredStore::Owner.
  void RemoveEnded(const DeviceSlot* slot) override;
  ChargedMemory RemoveEntry(const CachedVersion& version, Removal cause) noexcept override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_.mutex());
  std::optional<FactorRecord> RecordOf(const CachedVersion& version) const override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_.mutex());

  // Removes a limited number of entries that have ended by `now`. Returns an empty vector if there
  // are none.
  std::vector<ChargedMemory> SweepSome(absl::Time now) ABSL_LOCKS_EXCLUDED(store_.mutex());
  // Removes the entries of a lost device that have no copy elsewhere.
  std::vector<ChargedMemory> SweepLostDevice(DeviceSlot& slot) ABSL_LOCKS_EXCLUDED(store_.mutex());
  // Frees host memory and memory of `slot`'s device before it returns. The threads of the other
  // devices free the rest.
  static void Free(std::vector<ChargedMemory> freed, const DeviceSlot* slot);

  // Constant after construction.
  DevicePool* const pool_;
  CacheEvents* const events_;
  FactorStore* const files_;  // may be null
  TieredStore store_;
  RequestIds request_ids_;  // its mutex is taken after the store's
  HandleTable handles_ ABSL_GUARDED_BY(store_.mutex());
};

// Pins the factor of `handle`, of a single matrix. Errors are those of FactorCache::Acquire, and
// FAILED_PRECONDITION for a batch.
absl::StatusOr<FactorCache::Pin> AcquireSingle(FactorCache& cache, const std::string& tenant,
                                               const Handle& handle);

// Returns INVALID_ARGUMENT about `field` if `device` is set and is not the device of the factor.
absl::Status CheckDeviceOf(const std::string& device, const FactorCache::Pin& factor,
                           absl::string_view field);

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_FACTOR_CACHE_H_
