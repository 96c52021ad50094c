// SPDX-License-Identifier: Apache-2.0

// Computes a checksum of the parts of a factor, to detect corruption of host copies.
#ifndef CROUT_SERVER_ENGINE_CACHE_PARTS_CHECKSUM_H_
#define CROUT_SERVER_ENGINE_CACHE_PARTS_CHECKSUM_H_

#include <cstdint>

#include "kernels/factor_parts.h"

namespace crout {

// Returns the XXH3 hash of parts in host memory. The hash of each part is seeded with the hash of
// the parts before it.
uint64_t PartsChecksum(const FactorParts& parts);

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_PARTS_CHECKSUM_H_
