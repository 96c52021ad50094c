// SPDX-License-Identifier: Apache-2.0

// Checksum of the parts of a factor, used to detect corruption of host copies.
#ifndef CROUT_SERVER_ENGINE_CACHE_PARTS_CHECKSUM_H_
#define CROUT_SERVER_ENGINE_CACHE_PARTS_CHECKSUM_H_

#include <cstdint>

#include "kernels/factor_parts.h"

namespace crout {

// XXH3 over parts in host memory. The hash of each part is seeded with the hash of the parts before
// it.
uint64_t PartsChecksum(const FactorParts& parts);

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_PARTS_CHECKSUM_H_
