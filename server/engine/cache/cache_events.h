// SPDX-License-Identifier: Apache-2.0

// Events of the factor cache, for metrics.
#ifndef CROUT_SERVER_ENGINE_CACHE_CACHE_EVENTS_H_
#define CROUT_SERVER_ENGINE_CACHE_CACHE_EVENTS_H_

#include <cstdint>

#include "server/engine/cache/tier.h"

namespace crout {

// Why a lookup found no factor.
enum class CacheMiss : uint8_t {
  kUnknown,
  kExpired,
  kEvicted,
  kReleased,
  kOtherTenant,
  kDeviceLost,
  kDataLoss,
};

// Why a factor left a tier.
enum class CacheEviction : uint8_t {
  kPressure,
  kLease,
  kReleased,
  kReplaced,  // by the next version of its handle
  kDeviceLost,
  kDataLoss,
};

// Called from any thread, some with locks of the cache held: implementations must neither block nor
// call the cache.
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
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_CACHE_EVENTS_H_
