#include "server/cache/storage_checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace crout {

uint64_t StorageChecksum(const FactorStorage& storage) {
  uint64_t hash = 0;
  for (const Buffer* part :
       {&storage.lu, &storage.ipiv, &storage.matrix, &storage.scales, &storage.prepared}) {
    hash = XXH3_64bits_withSeed(part->data(), part->size(), hash);
  }
  return hash;
}

}  // namespace crout
