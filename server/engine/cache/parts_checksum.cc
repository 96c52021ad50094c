// SPDX-License-Identifier: Apache-2.0

#include "server/engine/cache/parts_checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace crout {

uint64_t PartsChecksum(const FactorParts& parts) {
  uint64_t hash = 0;
  for (const FactorPart& part : parts) {
    hash = XXH3_64bits_withSeed(part.buffer.data(), part.buffer.size(), hash);
  }
  return hash;
}

}  // namespace crout
