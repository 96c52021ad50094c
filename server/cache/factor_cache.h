// The cache of factors: handles, leases, pins, byte budgets and two tiers of memory.
//
// A factor is charged to the budget of the tier it is in by the Reservation that came with it.
// Under pressure the least recently used factor that nothing uses moves from its device to host
// memory, and from host memory out. A factor in use is never moved or dropped; one in host memory
// comes back to its device when a call uses it.
#ifndef CROUT_SERVER_CACHE_FACTOR_CACHE_H_
#define CROUT_SERVER_CACHE_FACTOR_CACHE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/factorization.h"
#include "kernels/util/mutex.h"
#include "server/cache/handle.h"
#include "server/cache/tombstones.h"
#include "server/metrics/labels.h"
#include "server/metrics/metrics.h"
#include "server/metrics/state.h"
#include "server/scheduling/device_pool.h"

namespace crout {

using Tier = CacheTier;

// Seconds of a call's phases, as in the contract's Timings.
struct CallTimings {
  double receive = 0;
  double queue = 0;
  double host_to_device = 0;
  double factor = 0;
  double solve = 0;
  double refine = 0;
  double device_to_host = 0;
  double send = 0;
  double total = 0;
};

// What a cached factor is, at one moment: a copy, safe to keep.
struct FactorInfo {
  Handle handle;
  std::string tenant;
  std::string name;
  int64_t version = 1;
  FactorSummary summary;
  std::string device;
  std::optional<int64_t> nnz;
  bool has_matrix = false;
  Tier tier = Tier::kDevice;
  size_t bytes = 0;
  absl::Time create_time;
  absl::Time lease_expire_time;
  CallTimings timings;
};

// A factorization on its way into the cache.
struct NewFactor {
  Factorization factorization;  // in the memory of slot->device
  // Of slot->budget: factorization.storage.bytes(), or FactorCache::kSmallestCharge if that is
  // more.
  Reservation reservation;
  DeviceSlot* slot = nullptr;
  std::optional<int64_t> nnz;
  CallTimings timings;
};

struct InsertOptions {
  std::string tenant;
  std::string name;
  std::string request_id;  // empty: none
  absl::Duration lease;
};

// Thread-safe.
class FactorCache {
  struct Entry;    // one handle
  struct Stored;   // one version
  struct Charged;  // its bytes, on their way out

 public:
  // The least that a factor is charged: about what its entry costs beside its bytes, so that tiny
  // factors cannot fill the memory uncounted.
  static constexpr size_t kSmallestCharge = size_t{4} << 10;

  // Keeps one version of a factor alive and where it is. Move-only; released on destruction, from
  // any thread, without blocking. The cache outlives its pins.
  class Pin {
   public:
    Pin(Pin&& other) noexcept;
    Pin& operator=(Pin&& other) noexcept;
    ~Pin();

    const FactorSummary& summary() const;
    int64_t version() const;
    DeviceSlot& slot() const;
    std::optional<int64_t> nnz() const;
    // Bytes that must be reserved on the device before OnDevice(): 0 unless the version is in host
    // memory at this moment.
    size_t promotion_bytes() const;
    // The factorization in its device's memory, moved there first if need be (blocks; worker
    // threads only). `context` is one of slot().device; `room`, of promotion_bytes(), is taken if
    // used and given back if not. `promoted` says whether this call moved it. The result is valid
    // while the pin lives. DATA_LOSS if the host copy's checksum fails (the factor is dropped
    // then); RESOURCE_EXHAUSTED if `room` is short or the device has no memory.
    absl::StatusOr<const Factorization*> OnDevice(ExecutionContext& context, Reservation room,
                                                  bool* promoted);

   private:
    friend class FactorCache;
    Pin(FactorCache* cache, std::shared_ptr<Stored> stored);

    FactorCache* cache_;
    std::shared_ptr<Stored> stored_;  // null once moved from
  };

  // All of these outlive the cache. `host_memory` holds the copies of the host tier, charged to the
  // pool's host budget. `now` is the clock of leases, for tests.
  FactorCache(DevicePool* pool, MemoryResource* host_memory, Metrics* metrics,
              absl::Time (*now)() = &absl::Now);
  ~FactorCache();
  FactorCache(const FactorCache&) = delete;  // Pins point to it.
  FactorCache& operator=(const FactorCache&) = delete;

  // Adds a factor. While a request_id is claimed (below), Insert with it completes the claim.
  FactorInfo Insert(NewFactor factor, const InsertOptions& options);

  // Idempotence. Returns the living factor of (tenant, request_id) or, if there is none, claims the
  // id and returns nullopt; ABORTED (reason REQUEST_IN_PROGRESS, with a retry delay) while another
  // call holds the claim. A claim ends with Insert or
  // AbandonRequest.
  absl::StatusOr<std::optional<FactorInfo>> ClaimRequest(std::string_view tenant,
                                                         std::string_view request_id);
  void AbandonRequest(std::string_view tenant, std::string_view request_id);

  // The next version of a handle, atomically: calls that pinned the old version finish with it.
  // NOT_FOUND as Acquire.
  absl::StatusOr<FactorInfo> Replace(std::string_view tenant, const Handle& handle,
                                     NewFactor factor);

  // NOT_FOUND for unknown, expired, evicted, released or another tenant's; only the owner's message
  // says which, and carries ErrorInfo reason HANDLE_EXPIRED, HANDLE_EVICTED, HANDLE_RELEASED,
  // DEVICE_LOST or DATA_LOSS; everybody else sees HANDLE_UNKNOWN. Counts a hit or a miss and marks
  // as used. A factor in host memory whose device was fenced moves to a healthy one.
  absl::StatusOr<Pin> Acquire(std::string_view tenant, const Handle& handle);

  absl::StatusOr<FactorInfo> Describe(std::string_view tenant, const Handle& handle) const;
  absl::StatusOr<FactorInfo> Renew(std::string_view tenant, const Handle& handle,
                                   absl::Duration lease);
  absl::Status Release(std::string_view tenant, const Handle& handle);

  // Newest first, at most `limit`, those created before `before` in creation order (0: from the
  // newest); `*next` is the value that continues, 0 at the end. `name`: empty for all.
  std::vector<FactorInfo> List(std::string_view tenant, std::string_view name, int64_t before,
                               size_t limit, int64_t* next) const;

  // Reserves on the device's budget, evicting idle factors there, least recently used first, until
  // it fits. Blocks while factors are copied to host memory: not for RPC threads, which call
  // slot.budget->TryReserve first. RESOURCE_EXHAUSTED if everything idle does not suffice (nothing
  // more is evicted then than needed to know: check before evicting).
  absl::StatusOr<Reservation> ReserveOnDevice(DeviceSlot& slot, size_t bytes);
  // Likewise on the host budget, dropping factors of the host tier. Both fail with reason
  // MEMORY_EXHAUSTED and, unless `bytes` is more than the whole budget, a retry delay.
  absl::StatusOr<Reservation> ReserveOnHost(size_t bytes);

  // Bytes that evicting everything idle would free on the slot's budget.
  size_t EvictableBytes(const DeviceSlot& slot) const;

  // Ends leases that are over, and forgets the factors of fenced devices that have no host copy.
  // The daemon calls it every second.
  void Sweep();

  // What the tiers hold, indexed by CacheTier: replaced and released versions that calls still use
  // not included.
  std::array<TierState, 2> tiers() const;
  size_t size() const;

 private:
  using RequestKey = std::pair<std::string, std::string>;  // tenant, request_id

  // Versions that nothing uses, least recently used first, and their bytes together.
  struct IdleList {
    std::list<Stored*> order;
    size_t bytes = 0;
  };
  // The list of the host tier; device i has list i + 1.
  static constexpr size_t kHostList = 0;

  static CacheTier TierOf(const Stored& stored);
  static size_t ListOf(const Stored& stored);
  static std::shared_ptr<Stored> MakeStored(NewFactor factor);

  // The entry, if the handle is the tenant's and alive at `now`; else NOT_FOUND, and why.
  absl::StatusOr<Entry*> Find(std::string_view tenant, const Handle& handle, absl::Time now,
                              CacheMiss* miss) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // How an entry that was not swept yet is over at `now`, if it is.
  static std::optional<Departure> DueDeparture(const Entry& entry, absl::Time now);
  FactorInfo Info(const Entry& entry) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends an entry. Its version is detached; Settle() it.
  std::shared_ptr<Stored> Remove(const Handle& handle, Departure departure)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // To be called when a version's pins, entry or tier changed: lists it if it is idle; takes its
  // bytes if nobody will use it again. The result is to be destroyed after the lock.
  Charged Settle(Stored& stored) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unlist(Stored& stored) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives a host copy whose device is lost to a healthy one.
  void Rehome(Stored& stored) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unpin(std::shared_ptr<Stored> stored) ABSL_LOCKS_EXCLUDED(mutex_);

  // Tiers (factor_cache_tiers.cc).
  absl::StatusOr<Reservation> Reserve(DeviceSlot* slot, MemoryBudget& budget, size_t list,
                                      size_t bytes);
  // The least recently used idle version of the list, marked as moving; null if the list is empty.
  // RESOURCE_EXHAUSTED if not even all of the list would make room for `bytes`.
  absl::StatusOr<std::shared_ptr<Stored>> TakeVictim(DeviceSlot* slot, const MemoryBudget& budget,
                                                     size_t list, size_t bytes);
  void Drop(const std::shared_ptr<Stored>& victim);
  void Demote(const std::shared_ptr<Stored>& victim);
  absl::Status CopyToHost(const Stored& from, Charged* to, uint64_t* checksum);
  bool IsResident(const Stored& stored) const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<const Factorization*> MakeResident(Stored& stored, ExecutionContext& context,
                                                    Reservation room, bool* promoted);
  absl::Status DropCorrupted(Stored& stored);

  // Constant after construction.
  DevicePool* const pool_;
  MemoryResource* const host_memory_;
  Metrics* const metrics_;
  absl::Time (*const now_)();
  // One for each idle list, held by the call that empties it: a second one waits for what the first
  // frees instead of finding nothing idle. A device's is taken before the host's, all before
  // mutex_.
  const std::unique_ptr<Mutex[]> pressure_;

  // Never held while bytes are copied. Guards the members of entries and versions too, except as
  // those say.
  mutable Mutex mutex_;
  std::unordered_map<Handle, std::unique_ptr<Entry>, absl::Hash<Handle>> entries_
      ABSL_GUARDED_BY(mutex_);
  // By tenant and order of creation.
  std::map<std::pair<std::string, int64_t>, Entry*> by_sequence_ ABSL_GUARDED_BY(mutex_);
  int64_t last_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  // nullopt: claimed, its factor is being made.
  std::map<RequestKey, std::optional<Handle>> requests_ ABSL_GUARDED_BY(mutex_);
  std::vector<IdleList> idle_ ABSL_GUARDED_BY(mutex_);
  Tombstones tombstones_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_CACHE_FACTOR_CACHE_H_
