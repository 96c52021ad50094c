// SPDX-License-Identifier: Apache-2.0

#include "server/engine/cache/tombstones.h"

#include <array>

#include "server/engine/reason.h"

namespace crout {
namespace {

struct DepartureTraits {
  std::string_view reason;
  const char* message;
  CacheMiss miss;
  CacheEviction eviction;
};

// In the order of Departure.
constexpr std::array<DepartureTraits, 5> kTraits = {{
    {kReasonHandleExpired,
     "the lease of the factor expired. Factor the matrix again, and request a longer lease or "
     "renew it",
     CacheMiss::kExpired, CacheEviction::kLease},
    {kReasonHandleEvicted,
     "the factor was evicted under memory pressure. Factor the matrix again, and release factors "
     "that are no longer needed",
     CacheMiss::kEvicted, CacheEviction::kPressure},
    {kReasonHandleReleased, "the factor was released. Factor the matrix again",
     CacheMiss::kReleased, CacheEviction::kReleased},
    {kReasonDeviceLost, "the factor was lost with its device. Factor the matrix again",
     CacheMiss::kDeviceLost, CacheEviction::kDeviceLost},
    {kReasonDataLoss,
     "the factor was dropped because its stored copy was corrupt. Factor the matrix again",
     CacheMiss::kDataLoss, CacheEviction::kDataLoss},
}};

const DepartureTraits& TraitsOf(Departure departure) {
  return kTraits[static_cast<size_t>(departure)];
}

}  // namespace

absl::Status GoneStatus(Departure departure) {
  const DepartureTraits& traits = TraitsOf(departure);
  return WithReason(absl::NotFoundError(traits.message), traits.reason);
}

absl::Status UnknownHandleStatus() {
  return WithReason(
      absl::NotFoundError("no such handle: the tenant has no factor with this handle, or the "
                          "server was restarted. Factor the matrix again"),
      kReasonHandleUnknown);
}

CacheMiss MissOf(Departure departure) { return TraitsOf(departure).miss; }

CacheEviction EvictionOf(Departure departure) { return TraitsOf(departure).eviction; }

Tombstones Tombstones::Of(const Handle& handle, std::string_view tenant) {
  Tombstones one(/*capacity=*/1);
  one.tombstones_.emplace(handle, Tombstone{std::string(tenant), Departure::kReleased});
  one.order_.push_back(handle);
  return one;
}

void Tombstones::Add(Tombstones of, Departure departure) noexcept {
  if (order_.size() == capacity_) {
    tombstones_.erase(order_.front());
    order_.pop_front();
  }
  of.tombstones_.begin()->second.departure = departure;
  tombstones_.merge(of.tombstones_);
  order_.splice(order_.end(), of.order_);
}

const Tombstones::Tombstone* Tombstones::Find(const Handle& handle) const {
  const auto found = tombstones_.find(handle);
  return found == tombstones_.end() ? nullptr : &found->second;
}

}  // namespace crout
