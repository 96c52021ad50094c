// What the cache keeps: an entry for each handle, and the versions of factors behind them. Private
// to the cache.
#ifndef CROUT_SERVER_CACHE_FACTOR_CACHE_ENTRY_H_
#define CROUT_SERVER_CACHE_FACTOR_CACHE_ENTRY_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "kernels/factorization.h"
#include "kernels/util/mutex.h"
#include "server/cache/factor_cache.h"

namespace crout {

// Bytes and what they are charged to. Members are destroyed from the last: memory is free before
// the budget says so.
struct FactorCache::Charged {
  DeviceSlot* slot = nullptr;  // in whose device's memory it is; null: host memory
  Reservation reservation;
  FactorStorage storage;
  std::shared_ptr<const IterationRecord> record;
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
  // The summary is constant. The storage of an idle or resident version changes under the mutex
  // alone; who has it pinned or moving reads it without. That of a pinned version that is not
  // resident is read and replaced under `promotion`.
  Factorization factorization;
  bool resident = true;   // in the memory of slot->device; else a host copy
  uint64_t checksum = 0;  // of the host copy

  int pins = 0;
  bool moving = false;     // taken by an eviction
  bool wanted = false;     // pinned since it was taken: the eviction leaves it alone
  Entry* entry = nullptr;  // null once detached
  bool listed = false;     // among its shelf's idle ones, at `position`
  std::list<Stored*>::iterator position;

  std::shared_ptr<const IterationRecord> record;
  bool record_listed = false;  // in the cache's records_, at `record_position`
  std::list<Stored*>::iterator record_position;

  Mutex promotion;  // Taken before the cache's mutex.
};

struct FactorCache::Entry {
  Handle handle;
  std::string tenant;
  std::string name;
  std::string request_id;
  int64_t sequence = 0;
  absl::Time create_time;
  absl::Time life_end;
  absl::Duration lease;          // its length
  absl::Time lease_expire_time;  // no later than life_end
  int uses = 0;                  // pins of this version and of those before
  std::shared_ptr<Stored> stored;
};

}  // namespace crout

#endif  // CROUT_SERVER_CACHE_FACTOR_CACHE_ENTRY_H_
