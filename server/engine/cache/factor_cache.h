// SPDX-License-Identifier: Apache-2.0

// The cache of factors: handles, leases, pins, byte budgets and two tiers of memory.
//
// A factor is charged to the budget of the tier it is in by the Reservation that came with it.
// Under pressure the least recently used factor that nothing uses moves from its device to host
// memory, and from host memory out; one that is of use on its device alone goes at once. A factor
// in use is never moved or dropped; one in host memory comes back to its device when a call uses
// it.
//
// A lease has a length. It runs from the last use: it does not end while a pin of the handle is
// held, and starts anew when one goes. A factor's life, counted from its creation, ends whatever
// uses it.
//
// Nothing here visits more entries than it returns, moves or removes.
#ifndef CROUT_SERVER_ENGINE_CACHE_FACTOR_CACHE_H_
#define CROUT_SERVER_ENGINE_CACHE_FACTOR_CACHE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/factorization.h"
#include "kernels/util/mutex.h"
#include "server/engine/cache/handle.h"
#include "server/engine/cache/iteration_record.h"
#include "server/engine/cache/tenant_loads.h"
#include "server/engine/cache/tier.h"
#include "server/engine/cache/tombstones.h"
#include "server/engine/call_timings.h"
#include "server/engine/scheduling/device_pool.h"
#include "server/observability/metrics/labels.h"
#include "server/observability/metrics/metrics.h"
#include "server/observability/metrics/state.h"

namespace crout {

// What a cached factor is, at one moment: a copy, safe to keep.
struct FactorInfo {
  Handle handle;
  std::string tenant;
  std::string name;
  int64_t version = 1;
  FactorSummary summary;  // without the counts of its iterations, which are in `record`
  std::shared_ptr<const IterationRecord> record;  // null: none, or dropped under pressure
  std::string device;
  std::optional<int64_t> nnz;
  bool has_matrix = false;
  Tier tier = Tier::kDevice;
  size_t bytes = 0;
  absl::Time create_time;
  absl::Time lease_expire_time;  // in use: as if the use ended now
  CallTimings timings;
};

// A factorization on its way into the cache.
struct NewFactor {
  // Of slot->budget: FactorCache::Charge(). Members are destroyed from the last: memory is free
  // before the budget says so.
  Reservation reservation;
  Factorization factorization;  // in the memory of slot->device
  DeviceSlot* slot = nullptr;
  std::shared_ptr<const IterationRecord> record;  // TakeRecord() of the factorization's summary
  std::optional<int64_t> nnz;
  CallTimings timings;
};

// A call that waits for a request_id which another one holds.
class RequestWaiter {
 public:
  virtual ~RequestWaiter() = default;

  // Once: the id has its factor now, or is free. From any thread; must not block.
  virtual void OnRequestSettled() noexcept = 0;
};

struct InsertOptions {
  std::string tenant;
  std::string name;
  std::string request_id;  // empty: none
  absl::Duration lease;
  absl::Duration life = absl::InfiniteDuration();  // the longest, from now
  bool listed = true;                              // whether List() tells of it
};

enum class Renewal : uint8_t { kReplace, kLengthen };

// Thread-safe.
class FactorCache {
  struct Entry;    // one handle
  struct Stored;   // one version
  struct Charged;  // its bytes, on their way out

 public:
  // What an entry costs beside the factor's bytes, names and all: charged with them, so that small
  // factors, and those without any, cannot fill the memory uncounted.
  static constexpr size_t kEntryBytes = size_t{4} << 10;
  // What a factor of so many bytes is charged.
  static constexpr size_t Charge(size_t storage_bytes) { return storage_bytes + kEntryBytes; }

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
    bool has_matrix() const;
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

    // Calls `read`, once, with the factorization's parts if they are in host memory at this moment;
    // false if they are on their device, where they then stay while the pin lives. Blocks; needs no
    // device, but waits for an OnDevice() of the version that is under way. DATA_LOSS as that, and
    // what `read` returns.
    using ReadParts = absl::FunctionRef<absl::Status(const FactorParts& parts)>;
    absl::StatusOr<bool> ReadOnHost(ReadParts read);

   private:
    friend class FactorCache;
    Pin(FactorCache* cache, std::shared_ptr<Stored> stored);

    FactorCache* cache_;
    std::shared_ptr<Stored> stored_;  // null once moved from
  };

  // All of these outlive the cache. `host_memory` holds the copies of the host tier, charged to the
  // pool's host budget. `loads` has each tenant's entries and their bytes, by tier. Leases go by
  // WallNow().
  FactorCache(DevicePool* pool, MemoryResource* host_memory, Metrics* metrics, TenantLoads* loads);
  ~FactorCache();
  FactorCache(const FactorCache&) = delete;  // Pins point to it.
  FactorCache& operator=(const FactorCache&) = delete;

  // Where memory lacks, Insert, Replace, Acquire, Renew, Release and the claims of requests throw
  // std::bad_alloc and leave the cache as it was.

  // Adds a factor. While a request_id is claimed (below), Insert with it completes the claim.
  FactorInfo Insert(NewFactor factor, const InsertOptions& options);

  // Idempotence. Returns the living factor of (tenant, request_id) or, if there is none, claims the
  // id and returns nullopt; ABORTED (reason REQUEST_IN_PROGRESS, with a retry delay) while another
  // call holds the claim. A claim ends with Insert or
  // AbandonRequest.
  absl::StatusOr<std::optional<FactorInfo>> ClaimRequest(std::string_view tenant,
                                                         std::string_view request_id);
  void AbandonRequest(std::string_view tenant, std::string_view request_id) noexcept;
  // Tells `waiter`, unless it is gone by then, when the claim ends; false if nobody holds one.
  bool AwaitRequest(std::string_view tenant, std::string_view request_id,
                    const std::shared_ptr<RequestWaiter>& waiter);
  void StopAwaiting(std::string_view tenant, std::string_view request_id,
                    const RequestWaiter* waiter) noexcept;
  // Whether anybody waits.
  bool IsAwaited(std::string_view tenant, std::string_view request_id) const;

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
  // Gives the lease another length, from now; no further than the factor's life. kLengthen: the
  // length and the end stay as they are where they are beyond that.
  absl::StatusOr<FactorInfo> Renew(std::string_view tenant, const Handle& handle,
                                   absl::Duration lease, Renewal renewal = Renewal::kReplace);
  absl::Status Release(std::string_view tenant, const Handle& handle);

  // Newest first, at most `limit`, those created before `before` in creation order (0: from the
  // newest); `*next` is the value that continues, 0 at the end. `name`: empty for all. Fewer than
  // `limit` where some are over, though others follow.
  std::vector<FactorInfo> List(std::string_view tenant, std::string_view name, int64_t before,
                               size_t limit, int64_t* next) const;

  // Reserves on the device's budget, evicting idle factors there, least recently used first, until
  // it fits. Blocks while factors are copied to host memory: not for RPC threads, which call
  // slot.budget->TryReserve first. RESOURCE_EXHAUSTED if everything idle does not suffice (nothing
  // more is evicted then than needed to know: check before evicting).
  absl::StatusOr<Reservation> ReserveOnDevice(DeviceSlot& slot, size_t bytes);
  // Likewise on the host budget, dropping iteration records, oldest first, and then factors of the
  // host tier. Both fail with reason
  // MEMORY_EXHAUSTED and, unless `bytes` is more than the whole budget, a retry delay.
  absl::StatusOr<Reservation> ReserveOnHost(size_t bytes);

  // RESOURCE_EXHAUSTED if not even evicting everything idle would make room for `bytes` there now.
  absl::Status CheckReachable(DeviceSlot& slot, size_t bytes) const;

  // Bytes that evicting everything idle would free on the slot's budget.
  size_t EvictableBytes(const DeviceSlot& slot) const;

  // The device whose memory a factor's end gives back. NOT_FOUND as Acquire.
  absl::StatusOr<DeviceSlot*> SlotOf(std::string_view tenant, const Handle& handle) const;

  // Ends leases that are over, and forgets the factors of fenced devices that have no host copy;
  // waits for no device: their memory is given back on their own threads. The daemon calls it every
  // second.
  void Sweep() { SweepFor(/*slot=*/nullptr); }

  // What the tiers hold, indexed by Tier: replaced and released versions that calls still use
  // not included.
  std::array<TierState, 2> tiers() const;
  size_t size() const;

 private:
  using RequestKey = std::pair<std::string, std::string>;             // tenant, request_id
  using RequestView = std::pair<std::string_view, std::string_view>;  // the same, to look it up
  struct RequestLess {
    using is_transparent = void;
    bool operator()(const RequestView& a, const RequestView& b) const { return a < b; }
  };
  using Waiters = std::map<const RequestWaiter*, std::weak_ptr<RequestWaiter>>;
  struct Request {
    std::optional<Handle> factor;  // nullopt: claimed, its factor is being made
    Waiters waiters;               // while claimed
  };
  using Requests = std::map<RequestKey, Request, RequestLess>;

  // tenant, name, order of creation; views of the entry's strings
  using ListKey = std::tuple<std::string_view, std::string_view, int64_t>;

  // The versions in one memory that entries have, and their bytes together.
  struct Shelf {
    std::list<Stored*> stored;
    size_t bytes = 0;
    // Those of them that nothing uses, least recently used first.
    std::list<Stored*> idle;
    size_t idle_bytes = 0;
  };
  // The shelf of the host tier; device i has shelf i + 1.
  static constexpr size_t kHostShelf = 0;

  static Tier TierOf(const Stored& stored);
  static size_t ShelfOf(const Stored& stored);
  static size_t ShelfOf(const DeviceSlot& slot);
  static std::shared_ptr<Stored> MakeStored(NewFactor factor);

  // The entry, if the handle is the tenant's and alive at `now`; else NOT_FOUND, and why.
  absl::StatusOr<Entry*> Find(std::string_view tenant, const Handle& handle, absl::Time now,
                              CacheMiss* miss) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // How an entry that was not swept yet is over at `now`, if it is.
  static std::optional<Departure> DueDeparture(const Entry& entry, absl::Time now);
  // The entry with that version, its own or one that is to be.
  static FactorInfo Info(const Entry& entry, const Stored& stored, absl::Time now);

  // When a lease of the entry's length ends that starts now, and when the entry is over unless a
  // use begins or ends before.
  static absl::Time LeaseFrom(const Entry& entry, absl::Time now);
  static absl::Time EndOf(const Entry& entry);
  // When the lease ends, if a use that is under way ended now.
  static absl::Time LeaseEndOf(const Entry& entry, absl::Time now);
  // Changes what EndOf(entry) depends on.
  void Reschedule(Entry& entry, absl::FunctionRef<void()> change) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // As Sweep(), but what is in the memory of `slot`'s device is free on return.
  void SweepFor(const DeviceSlot* slot);
  // Ends some of the entries that are over at `now`; empty if there are none.
  std::vector<Charged> SweepSome(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends those whose device is lost and that have no host copy.
  std::vector<Charged> SweepLostDevices() ABSL_LOCKS_EXCLUDED(mutex_);
  // Before it returns what is in host memory or that of `slot`'s device; the rest on the threads of
  // its device.
  static void Free(std::vector<Charged> freed, const DeviceSlot* slot);

  // The changes themselves. They need no memory, so that an operation which begins with what does
  // takes place as a whole or not at all.

  // An entry's version: from here on it is on a shelf, until Detach.
  void Attach(Entry& entry, std::shared_ptr<Stored> stored) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The result is to be settled.
  std::shared_ptr<Stored> Detach(Entry& entry) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Changes the memory that a version is in.
  void Move(Stored& stored, absl::FunctionRef<void()> change) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Tells the shelf's device what of it is idle.
  void TellIdle(size_t shelf) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Shelve(Stored& stored) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unshelve(Stored& stored) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends an entry. Its version is detached; Settle() it.
  std::shared_ptr<Stored> Remove(const Handle& handle, Departure departure) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // To be called when a version's pins, entry or tier changed: lists it if it is idle; takes its
  // bytes if nobody will use it again. The result is to be destroyed after the lock.
  Charged Settle(Stored& stored) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unlist(Stored& stored) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Counts the version's iteration record among those that can be dropped, or no longer.
  void ListRecord(Stored& stored) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<const IterationRecord> TakeRecordOf(Stored& stored) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Until `bytes` are free in the host budget, or no record is left.
  void DropRecords(size_t bytes);
  static void Notify(const Waiters& waiters) noexcept;
  // Gives a host copy whose device is lost to a healthy one.
  void Rehome(Stored& stored) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unpin(std::shared_ptr<Stored> stored) noexcept ABSL_LOCKS_EXCLUDED(mutex_);

  // Tiers (factor_cache_tiers.cc).
  absl::StatusOr<Reservation> Reserve(DeviceSlot* slot, MemoryBudget& budget, size_t shelf,
                                      size_t bytes);
  // The least recently used idle version of the shelf, marked as moving; null if all are in use.
  // RESOURCE_EXHAUSTED if not even all of the idle ones would make room for `bytes`.
  absl::StatusOr<std::shared_ptr<Stored>> TakeVictim(DeviceSlot* slot, const MemoryBudget& budget,
                                                     size_t shelf, size_t bytes);
  void Drop(const std::shared_ptr<Stored>& victim);
  void Demote(const std::shared_ptr<Stored>& victim);
  absl::Status CopyToHost(const Stored& from, Charged* to, uint64_t* checksum);
  bool IsResident(const Stored& stored) const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<const Factorization*> MakeResident(Stored& stored, ExecutionContext& context,
                                                    Reservation room, bool* promoted);
  absl::StatusOr<bool> ReadIfOnHost(Stored& stored, Pin::ReadParts read);
  // DATA_LOSS, and the factor is dropped, if a host copy is not what it was. Under `promotion`.
  absl::Status CheckHostCopy(Stored& stored);

  // Constant after construction.
  DevicePool* const pool_;
  MemoryResource* const host_memory_;
  Metrics* const metrics_;
  TenantLoads* const loads_;
  // One for each shelf, held by the call that empties it: a second one waits for what the first
  // frees instead of finding nothing idle. A device's is taken before the host's, all before
  // mutex_.
  const std::unique_ptr<Mutex[]> pressure_;

  // Never held while bytes are copied. Guards the members of entries and versions too, except as
  // those say.
  mutable Mutex mutex_;
  std::unordered_map<Handle, std::unique_ptr<Entry>, absl::Hash<Handle>> entries_
      ABSL_GUARDED_BY(mutex_);
  // Every entry under its tenant and the name "", and, if it has a name, under that too.
  std::map<ListKey, Entry*> listed_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<absl::Time, Entry*>> by_end_ ABSL_GUARDED_BY(mutex_);  // EndOf
  int64_t last_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  Requests requests_ ABSL_GUARDED_BY(mutex_);
  // Versions with an iteration record, oldest first.
  std::list<Stored*> records_ ABSL_GUARDED_BY(mutex_);
  size_t record_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // what those are charged
  std::vector<Shelf> shelves_ ABSL_GUARDED_BY(mutex_);
  Tombstones tombstones_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_FACTOR_CACHE_H_
