// SPDX-License-Identifier: Apache-2.0

// Tiers and events of the factor cache, for metrics.
#ifndef CROUT_SERVER_ENGINE_CACHE_CACHE_EVENTS_H_
#define CROUT_SERVER_ENGINE_CACHE_CACHE_EVENTS_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace crout {

enum class Tier : uint8_t {
  kDevice,  // in the memory of its device
  kHost,    // in host memory; moves back to its device when it is next used
  kStore,   // in a file; moves back to its device when it is next used
};
inline constexpr size_t kTierCount = 3;

// Contents of one tier.
struct TierState {
  int64_t entries = 0;
  int64_t bytes = 0;
};
using TierStates = std::array<TierState, kTierCount>;  // indexed by Tier

// Reasons for which a lookup finds no factor.
enum class CacheMiss : uint8_t {
  kUnknown,
  kExpired,
  kEvicted,
  kReleased,
  kOtherTenant,
  kDeviceLost,
  kDataLoss,
  kRestarted,  // the handle is of another process: an earlier one of this server, or another server
  kSuspended,  // another server may have taken over the folder of the factor
};

// Reasons for which a factor leaves a tier.
enum class CacheEviction : uint8_t {
  kPressure,
  kLease,
  kReleased,
  kReplaced,  // by the next version of its handle
  kDeviceLost,
  kDataLoss,
  kMoved,  // another server has taken over its folder
};

// The cache calls these functions from any thread, and some of them while it holds locks.
// Implementations must neither block nor call the cache.
class CacheEvents {
 public:
  virtual ~CacheEvents() = default;

  virtual void OnHit(Tier tier) noexcept = 0;
  virtual void OnMiss(CacheMiss reason) noexcept = 0;
  // Called once for each version that leaves a tier. A version that moves from its device to host
  // memory leaves the device tier.
  virtual void OnEviction(Tier tier, CacheEviction reason) noexcept = 0;
  // A factor was copied from host memory to its device in `seconds`.
  virtual void OnPromotion(double seconds) noexcept = 0;
  // A factor was copied to another device in `seconds`.
  virtual void OnDeviceCopy(double seconds) noexcept = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_CACHE_EVENTS_H_
