// SPDX-License-Identifier: Apache-2.0

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <utility>

#include "kernels/util/failpoint.h"
#include "kernels/util/status_macros.h"
#include "server/engine/cache/cached_version.h"
#include "server/engine/cache/tier_copier.h"

namespace crout {
namespace {

// Returns the XXH3 hash of parts in host memory, to detect corruption. The hash of each part is
// seeded with the hash of the parts before it.
uint64_t PartsChecksum(const FactorParts& parts) {
  uint64_t hash = 0;
  for (const FactorPart& part : parts) {
    hash = XXH3_64bits_withSeed(part.buffer.data(), part.buffer.size(), hash);
  }
  return hash;
}

}  // namespace

absl::Status CheckHostCopy(const CachedVersion& version) {
  const FactorParts& parts = version.factorization.parts;
  for (const FactorPart& part : parts) {
    CROUT_RETURN_IF_ERROR(Failpoint("cache.host_copy", {part.buffer.data(), part.buffer.size()}));
  }
  if (PartsChecksum(parts) == version.checksum) return absl::OkStatus();
  return absl::DataLossError("the copy in host memory is corrupt");
}

absl::StatusOr<ChargedMemory> HostCopier::CopyIn(const CachedVersion& from,
                                                 const FactorRecord* /*record*/,
                                                 std::string_view /*tenant*/, Reserve reserve,
                                                 std::shared_ptr<OverdueWrite>* /*overdue*/) {
  ChargedMemory copy;
  CROUT_ASSIGN_OR_RETURN(copy.reservation, reserve(from.bytes));
  DeviceSlot& slot = *from.slot;
  {
    MutexLock lock(&slot.transfer_mutex);
    CROUT_ASSIGN_OR_RETURN(copy.parts,
                           CopyToHost(*slot.transfer_context, from.factorization.parts, *memory_));
  }
  copy.checksum = PartsChecksum(copy.parts);
  return copy;
}

absl::StatusOr<FactorParts> HostCopier::CopyOut(ExecutionContext& context,
                                                const CachedVersion& from,
                                                std::string_view /*tenant*/) {
  CROUT_RETURN_IF_ERROR(CheckHostCopy(from));
  return CopyToDevice(context, from.factorization.parts);
}

absl::Status HostCopier::Read(const CachedVersion& from, std::string_view /*tenant*/,
                              ReadParts read) {
  CROUT_RETURN_IF_ERROR(CheckHostCopy(from));
  return read(from.factorization.parts);
}

}  // namespace crout
