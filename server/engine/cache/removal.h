// SPDX-License-Identifier: Apache-2.0

// Records why factors were removed, to report the reason to their owners.
#ifndef CROUT_SERVER_ENGINE_CACHE_REMOVAL_H_
#define CROUT_SERVER_ENGINE_CACHE_REMOVAL_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/engine/cache/cache_events.h"
#include "server/engine/cache/handle.h"

namespace crout {

// Reason for the removal of a factor.
enum class Removal : uint8_t { kExpired, kEvicted, kReleased, kDeviceLost, kDataLoss, kMoved };

// Returns NOT_FOUND with the reason, for the owner of the factor.
absl::Status RemovedStatus(Removal cause);
// Returns NOT_FOUND for all other tenants, and for handles without a tombstone.
absl::Status UnknownHandleStatus();
// Returns NOT_FOUND for handles of other processes (Handle::IsOfThisProcess).
absl::Status OtherProcessStatus();

CacheMiss MissOf(Removal cause);
CacheEviction EvictionOf(Removal cause);

// Records the last `capacity` removals. Not thread-safe.
class Tombstones {
 public:
  static constexpr size_t kDefaultCapacity = 4096;

  struct Tombstone {
    std::string tenant;
    Removal cause;
  };

  explicit Tombstones(size_t capacity = kDefaultCapacity) : capacity_(capacity) {}

  // Returns an object with the tombstone of one factor. It is allocated while the factor lives, so
  // that removing the factor needs no memory.
  static Tombstones Make(const Handle& handle, std::string_view tenant);
  // Adds the tombstone of a removed factor. A handle must be added only once.
  void Add(Tombstones of, Removal cause) noexcept;
  // Returns null if the handle has no tombstone, or is no longer among the last `capacity`.
  const Tombstone* Find(const Handle& handle) const;

 private:
  size_t capacity_;
  std::map<Handle, Tombstone> tombstones_;
  std::list<Handle> order_;  // oldest first
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_REMOVAL_H_
