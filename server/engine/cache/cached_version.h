// SPDX-License-Identifier: Apache-2.0

// The versions of factors that the cache keeps. Private to the cache.
#ifndef CROUT_SERVER_ENGINE_CACHE_CACHED_VERSION_H_
#define CROUT_SERVER_ENGINE_CACHE_CACHED_VERSION_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>

#include "kernels/factorization.h"
#include "kernels/util/mutex.h"
#include "server/engine/cache/factor_cache.h"
#include "server/engine/cache/handle_table.h"
#include "server/engine/call_timings.h"

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
struct CachedVersion {
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
  bool moving = false;  // selected by an eviction
  bool wanted = false;  // pinned since `moving` was set; the eviction then leaves it alone
  HandleTable::Entry* entry = nullptr;  // null once detached
  ListPlace<CachedVersion> shelved{this};
  ListPlace<CachedVersion> idle{this};  // place among the idle versions of its shelf

  std::shared_ptr<const IterationRecord> record;
  ListPlace<CachedVersion> recorded{this};  // place in the cache's records_

  Mutex promotion;  // Taken before the cache's mutex.
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_CACHED_VERSION_H_
