// SPDX-License-Identifier: Apache-2.0

// Tells whether bytes that were put away are still what they were.
#ifndef CROUT_SERVER_ENGINE_CACHE_PARTS_CHECKSUM_H_
#define CROUT_SERVER_ENGINE_CACHE_PARTS_CHECKSUM_H_

#include <cstdint>

#include "kernels/factor_parts.h"

namespace crout {

// XXH3 over parts in host memory, each seeded with the hash of those before it.
uint64_t PartsChecksum(const FactorParts& parts);

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_PARTS_CHECKSUM_H_
