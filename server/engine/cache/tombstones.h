// SPDX-License-Identifier: Apache-2.0

// What became of factors that are gone, so that their owners can be told.
#ifndef CROUT_SERVER_ENGINE_CACHE_TOMBSTONES_H_
#define CROUT_SERVER_ENGINE_CACHE_TOMBSTONES_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/engine/cache/handle.h"
#include "server/observability/metrics/labels.h"

namespace crout {

// How a factor went for good.
enum class Departure : uint8_t { kExpired, kEvicted, kReleased, kDeviceLost, kDataLoss };

// NOT_FOUND with the reason, for the owner.
absl::Status GoneStatus(Departure departure);
// NOT_FOUND, for everybody else.
absl::Status UnknownHandleStatus();

CacheMiss MissOf(Departure departure);
CacheEviction EvictionOf(Departure departure);

// The last `capacity` departures. Not thread-safe.
class Tombstones {
 public:
  static constexpr size_t kDefaultCapacity = 4096;

  struct Tombstone {
    std::string tenant;
    Departure departure;
  };

  explicit Tombstones(size_t capacity = kDefaultCapacity) : capacity_(capacity) {}

  // The tombstone of one factor, made while that lives: a departure needs no memory.
  static Tombstones Of(const Handle& handle, std::string_view tenant);
  // A handle departs once.
  void Add(Tombstones of, Departure departure) noexcept;
  // nullptr if it never was, or too long ago.
  const Tombstone* Find(const Handle& handle) const;

 private:
  size_t capacity_;
  std::map<Handle, Tombstone> tombstones_;
  std::list<Handle> order_;  // oldest first
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_TOMBSTONES_H_
