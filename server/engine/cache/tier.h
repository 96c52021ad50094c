// SPDX-License-Identifier: Apache-2.0

// Where a cached factor is kept.
#ifndef CROUT_SERVER_ENGINE_CACHE_TIER_H_
#define CROUT_SERVER_ENGINE_CACHE_TIER_H_

#include <cstdint>

namespace crout {

enum class Tier : uint8_t {
  kDevice,  // in the memory of its device
  kHost,    // in host memory; it goes back when next used
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_TIER_H_
