// SPDX-License-Identifier: Apache-2.0

// The memory, or the file, of a version of a factor, together with its reservation.
#ifndef CROUT_SERVER_ENGINE_CACHE_CHARGED_MEMORY_H_
#define CROUT_SERVER_ENGINE_CACHE_CHARGED_MEMORY_H_

#include <cstdint>
#include <memory>

#include "kernels/factor_parts.h"
#include "server/engine/admission/memory_budget.h"
#include "server/engine/cache/cached_version.h"
#include "server/engine/scheduling/device_pool.h"
#include "server/engine/store/factor_store.h"

namespace crout {

// Members are destroyed in reverse order, so that the memory is freed before the budget counts it
// as free. Destroy it without holding locks.
struct ChargedMemory {
  // The version of a removed entry. Its analysis has a reservation, whose owner locks the mutex of
  // the store.
  std::shared_ptr<const CachedVersion> version = nullptr;
  DeviceSlot* slot = nullptr;  // device of the memory; null: not the memory of a device
  Reservation reservation;
  FactorParts parts;
  uint64_t checksum = 0;  // checksum of parts in host memory
  UnclaimedFile file;
  std::shared_ptr<const IterationRecord> record;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_CHARGED_MEMORY_H_
