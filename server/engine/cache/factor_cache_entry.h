// SPDX-License-Identifier: Apache-2.0

// What the cache keeps: an entry for each handle, and the versions of factors behind them. Private
// to the cache.
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

// Bytes and what they are charged to. Members are destroyed from the last: memory is free before
// the budget says so.
struct FactorCache::Charged {
  DeviceSlot* slot = nullptr;  // in whose device's memory it is; null: host memory
  Reservation reservation;
  FactorParts parts;
  std::shared_ptr<const IterationRecord> record;
};

// A place in a std::list of `T*` that is there before it is used: to take it and to leave it needs
// no memory.
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
  const typename std::list<T*>::iterator position_;  // wherever it is
};

// Lives while an entry, a pin or a move holds it; its bytes go as soon as it is detached, unpinned
// and not moving. The cache's mutex guards all but the first group and what the others say.
struct FactorCache::Stored {
  // Constant once the entry has it.
  Handle handle;
  int64_t version = 1;
  std::optional<int64_t> nnz;
  CallTimings timings;
  bool has_matrix = false;
  size_t bytes = 0;

  // Changes only while unpinned.
  DeviceSlot* slot = nullptr;

  Reservation reservation;
  // The summary is constant. The parts of an idle or resident version changes under the mutex
  // alone; who has it pinned or moving reads it without. That of a pinned version that is not
  // resident is read and replaced under `promotion`.
  Factorization factorization;
  bool resident = true;   // in the memory of slot->device; else a host copy
  uint64_t checksum = 0;  // of the host copy

  int pins = 0;
  bool moving = false;     // taken by an eviction
  bool wanted = false;     // pinned since it was taken: the eviction leaves it alone
  Entry* entry = nullptr;  // null once detached
  ListPlace<Stored> shelved{this};
  ListPlace<Stored> idle{this};  // among its shelf's idle ones

  std::shared_ptr<const IterationRecord> record;
  ListPlace<Stored> recorded{this};  // in the cache's records_

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
  const bool listed;  // else it is a part of something, such as a series
  int64_t sequence = 0;
  absl::Time create_time;
  absl::Time life_end;
  absl::Duration lease;          // its length
  absl::Time lease_expire_time;  // no later than life_end
  int uses = 0;                  // pins of this version and of those before
  std::shared_ptr<Stored> stored;
  TenantLoads::Account account;  // has the entry, if it is listed, and the bytes of `stored`
  // What will be left of it.
  Tombstones tombstone = Tombstones::Of(handle, tenant);
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_FACTOR_CACHE_ENTRY_H_
