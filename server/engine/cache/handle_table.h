// SPDX-License-Identifier: Apache-2.0

// The handles of cached factors: owners, names, leases and removals.
#ifndef CROUT_SERVER_ENGINE_CACHE_HANDLE_TABLE_H_
#define CROUT_SERVER_ENGINE_CACHE_HANDLE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/hash/hash.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/engine/cache/cache_events.h"
#include "server/engine/cache/handle.h"
#include "server/engine/cache/removal.h"
#include "server/engine/cache/tenant_loads.h"

namespace crout {

struct CachedVersion;

struct InsertOptions {
  std::string tenant;
  std::string name;
  std::string request_id;  // empty: none
  absl::Duration lease;
  absl::Duration life = absl::InfiniteDuration();  // maximum life of the factor, from now on
  bool listed = true;                              // List() includes the factor
  bool pin = false;                                // protect the factor from eviction
  bool durable = false;                            // write the factor to a file
};

enum class Renewal : uint8_t { kReplace, kLengthen };

// Not thread-safe. Methods that are not noexcept may throw std::bad_alloc; they then change
// nothing. No method visits more entries than it returns, inserts or removes.
class HandleTable {
 public:
  // A lease has a length. It runs from the end of the last use, and does not end during a use. The
  // factor's life, counted from its creation, ends in any case.
  struct Entry {
    Entry(const InsertOptions& options, TenantLoads::Account tenant_account, absl::Time now,
          const Handle& new_handle = Handle::Random());

    // Returns the time at which the entry ends, unless a use begins or ends earlier.
    absl::Time end() const { return uses > 0 ? life_end : lease_expire_time; }
    // Returns the end of a lease that starts at `now`.
    absl::Time LeaseFrom(absl::Time now) const;
    // Returns the end of the lease. If the entry is in use, assumes that the use ends at `now`.
    absl::Time LeaseEnd(absl::Time now) const {
      return uses > 0 ? LeaseFrom(now) : lease_expire_time;
    }

    const Handle handle;
    const std::string tenant;
    const std::string name;
    const std::string request_id;
    const bool listed;  // false for an internal entry, such as the matrix of a series
    const absl::Time create_time;
    const absl::Time life_end;
    int64_t sequence = 0;          // order of creation
    absl::Duration lease;          // length of the lease
    absl::Time lease_expire_time;  // no later than life_end
    int uses = 0;                  // pins of the current version and of older versions
    // Folder of the store that has or will have the versions of the factor; empty without a store.
    std::string folder;
    int64_t last_version = 1;  // largest number that a version of the factor has received
    std::shared_ptr<CachedVersion> stored;
    TenantLoads::Account account;  // counts the entry, if it is listed, and the bytes of `stored`
    Tombstones tombstone = Tombstones::Make(handle, tenant);
  };

  // Adds the entry under its handle and returns it.
  Entry& Insert(std::unique_ptr<Entry> entry);

  // Returns the entry if the handle belongs to the tenant and has not ended by `now`. Otherwise
  // returns NOT_FOUND and sets `*miss` to the cause.
  absl::StatusOr<Entry*> Find(std::string_view tenant, const Handle& handle, absl::Time now,
                              CacheMiss* miss) const;
  // Returns the entry of any tenant; null if there is none.
  Entry* Find(const Handle& handle) const;
  // Returns at most `limit` listed entries, newest first, that were created before the position
  // `before` (0: from the newest). `*next` is the value of `before` that continues the list, or 0
  // at the end. An empty `name` matches all entries of the tenant.
  std::vector<const Entry*> List(std::string_view tenant, std::string_view name, int64_t before,
                                 size_t limit, int64_t* next) const;
  // Returns an entry that has ended by `now`; null if there is none.
  Entry* FirstEnded(absl::Time now) const;
  size_t size() const { return entries_.size(); }
  // Returns the entries of all tenants, in no order.
  std::vector<Entry*> All() const;

  // Runs `change`, which may change the entry's end(), and updates the order of the entries.
  void Reschedule(Entry& entry, absl::FunctionRef<void()> change) noexcept;
  // Removes the entry and records the cause for its owner.
  std::unique_ptr<Entry> Remove(const Handle& handle, Removal cause) noexcept;

 private:
  // tenant, name, order of creation; views of the entry's strings
  using ListKey = std::tuple<std::string_view, std::string_view, int64_t>;

  std::unordered_map<Handle, std::unique_ptr<Entry>, absl::Hash<Handle>> entries_;
  // Each listed entry under its tenant with the name "", and also under its own name if it has one.
  std::map<ListKey, Entry*> listed_;
  std::set<std::pair<absl::Time, Entry*>> by_end_;
  int64_t last_sequence_ = 0;
  Tombstones tombstones_;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_HANDLE_TABLE_H_
