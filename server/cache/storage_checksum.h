// Tells whether bytes that were put away are still what they were.
#ifndef CROUT_SERVER_CACHE_STORAGE_CHECKSUM_H_
#define CROUT_SERVER_CACHE_STORAGE_CHECKSUM_H_

#include <cstdint>

#include "kernels/factorization.h"

namespace crout {

// XXH3 over the parts of a storage in host memory, each seeded with the hash of those before it.
uint64_t StorageChecksum(const FactorStorage& storage);

}  // namespace crout

#endif  // CROUT_SERVER_CACHE_STORAGE_CHECKSUM_H_
