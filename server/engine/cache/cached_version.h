// SPDX-License-Identifier: Apache-2.0

// The data of the cache: an entry for each handle, and the versions of factors. Private to the
// cache.
#ifndef CROUT_SERVER_ENGINE_CACHE_FACTOR_CACHE_ENTRY_H_
#define CROUT_SERVER_ENGINE_CACHE_FACTOR_CACHE_ENTRY_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "kernels/factorization.h"
#include "kernels/util/mutex.h"
#include "server/engine/cache/factor_cache.h"

namespace crout {

// Bytes to be freed and their reservation. Members are destroyed in reverse order: the memory is
// free before the budget counts it as free.
struct FactorCache::Charged {
  DeviceSlot* slot = nullptr;  // device of the memory; null: host memory
  Reservation reservation;
  FactorParts parts;
  std::shared_ptr<const IterationRecord> record;
};

// A preallocated element of a std::list of `T*`. Inserting it into a list and removing it allocates
// nothing.
template <class T>
class ListPlace {
 public:
  explicit ListPlace(T* value) : outside_{value}, position_(outside_.begin()) {}
  ListPlace(const ListPlace&) = delete;  // The list refers to it.
  ListPlace& operator=(const ListPlace&) = delete;

  bool taken() const { return outside_.empty(); }
  void Take(std::list<T*>& list) noexcept { list.splice(list.end(), outside_); }
  void Leave(std::list<T*>& list) noexcept { outside_.splice(outside_.end(), list, position_); }

 private:
  std::list<T*> outside_;
  const typename std::list<T*>::iterator position_;  // valid in either list
};

// One version of a factor. Lives while an entry, a pin or a move refers to it. Its bytes are freed
// as soon as it is detached from its entry, unpinned and not moving. The cache's mutex guards the
// members, except the first group and where comments state otherwise.
struct FactorCache::Stored {
  // Constant after Attach().
  Handle handle;
  int64_t version = 1;
  std::optional<int64_t> nnz;
  CallTimings timings;
  bool has_matrix = false;
  size_t bytes = 0;

  // Changes only while unpinned.
  DeviceSlot* slot = nullptr;

  Reservation reservation;
  // The summary is constant. The parts of an idle or resident version change only under the mutex;
  // a thread that has pinned it or is moving it reads them without the mutex. The parts of a pinned
  // version that is not resident are read and replaced under `promotion`.
  Factorization factorization;
  bool resident = true;   // in the memory of slot->device; otherwise a host copy
  uint64_t checksum = 0;  // of the host copy

  int pins = 0;
  bool moving = false;     // selected by an eviction
  bool wanted = false;     // pinned since `moving` was set; the eviction then leaves it alone
  Entry* entry = nullptr;  // null once detached
  ListPlace<Stored> shelved{this};
  ListPlace<Stored> idle{this};  // place among the idle versions of its shelf

  std::shared_ptr<const IterationRecord> record;
  ListPlace<Stored> recorded{this};  // place in the cache's records_

  Mutex promotion;  // Taken before the cache's mutex.
};

struct FactorCache::Entry {
  Entry(const InsertOptions& options, TenantLoads::Account its_account)
      : tenant(options.tenant),
        name(options.name),
        request_id(options.request_id),
        listed(options.listed),
        account(std::move(its_account)) {}

  const Handle handle = Handle::Random();
  const std::string tenant;
  const std::string name;
  const std::string request_id;
  const bool listed;  // false for a factor that is part of something else, such as a series
  int64_t sequence = 0;
  absl::Time create_time;
  absl::Time life_end;
  absl::Duration lease;          // length of the lease
  absl::Time lease_expire_time;  // no later than life_end
  int uses = 0;                  // pins of the current version and of older versions
  std::shared_ptr<Stored> stored;
  TenantLoads::Account account;  // counts the entry, if it is listed, and the bytes of `stored`
  // Inserted into the cache's tombstones when the entry is removed.
  Tombstones tombstone = Tombstones::Of(handle, tenant);
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_FACTOR_CACHE_ENTRY_H_
