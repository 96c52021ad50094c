// SPDX-License-Identifier: Apache-2.0

// The tiers of memory for cached factors.
#ifndef CROUT_SERVER_ENGINE_CACHE_TIER_H_
#define CROUT_SERVER_ENGINE_CACHE_TIER_H_

#include <cstdint>

namespace crout {

enum class Tier : uint8_t {
  kDevice,  // in the memory of its device
  kHost,    // in host memory; moves back to its device when it is next used
};

// Contents of one tier.
struct TierState {
  int64_t entries = 0;
  int64_t bytes = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_TIER_H_
