// SPDX-License-Identifier: Apache-2.0

#include "server/engine/cache/removal.h"

#include <array>

#include "server/engine/error.h"

namespace crout {
namespace {

struct RemovalTraits {
  std::string_view reason;
  const char* message;
  CacheMiss miss;
  CacheEviction eviction;
};

// In the order of Removal.
constexpr std::array<RemovalTraits, 6> kTraits = {{
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
    {kReasonServerRestarted, "another server has taken over the factor. Factor the matrix again",
     CacheMiss::kRestarted, CacheEviction::kMoved},
}};

const RemovalTraits& TraitsOf(Removal cause) { return kTraits[static_cast<size_t>(cause)]; }

}  // namespace

absl::Status RemovedStatus(Removal cause) {
  const RemovalTraits& traits = TraitsOf(cause);
  return WithReason(absl::NotFoundError(traits.message), traits.reason);
}

absl::Status UnknownHandleStatus() {
  return WithReason(
      absl::NotFoundError(
          "no such handle: the tenant has no factor with this handle. Factor the matrix again"),
      kReasonHandleUnknown);
}

absl::Status OtherProcessStatus() {
  return WithReason(absl::NotFoundError("the factor was lost when the server restarted, or belongs "
                                        "to another server. Factor the matrix again"),
                    kReasonServerRestarted);
}

CacheMiss MissOf(Removal cause) { return TraitsOf(cause).miss; }

CacheEviction EvictionOf(Removal cause) { return TraitsOf(cause).eviction; }

Tombstones Tombstones::Make(const Handle& handle, std::string_view tenant) {
  Tombstones one(/*capacity=*/1);
  one.tombstones_.emplace(handle, Tombstone{std::string(tenant), Removal::kReleased});
  one.order_.push_back(handle);
  return one;
}

void Tombstones::Add(Tombstones of, Removal cause) noexcept {
  if (order_.size() == capacity_) {
    tombstones_.erase(order_.front());
    order_.pop_front();
  }
  of.tombstones_.begin()->second.cause = cause;
  tombstones_.merge(of.tombstones_);
  order_.splice(order_.end(), of.order_);
}

const Tombstones::Tombstone* Tombstones::Find(const Handle& handle) const {
  const auto found = tombstones_.find(handle);
  return found == tombstones_.end() ? nullptr : &found->second;
}

}  // namespace crout
