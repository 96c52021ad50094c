// SPDX-License-Identifier: Apache-2.0

// One memory that holds cached factors: the memory of a device, host memory, or the store.
#ifndef CROUT_SERVER_ENGINE_CACHE_TIER_MEMORY_H_
#define CROUT_SERVER_ENGINE_CACHE_TIER_MEMORY_H_

#include <cstddef>
#include <list>
#include <memory>
#include <vector>

#include "kernels/util/mutex.h"
#include "server/engine/admission/memory_budget.h"
#include "server/engine/cache/cache_events.h"
#include "server/engine/cache/tenant_share.h"
#include "server/engine/cache/tier_copier.h"
#include "server/engine/scheduling/device_pool.h"

namespace crout {

struct CachedVersion;

struct TierMemory {
  // Constant after the construction of TieredStore.
  Tier tier = Tier::kDevice;
  size_t index = 0;            // index of this memory in the tenants' shares
  DeviceSlot* slot = nullptr;  // the slot of its device; null: not the memory of a device
  MemoryBudget* budget = nullptr;
  // Idle versions move to this memory under memory pressure; null: they are dropped.
  TierMemory* below = nullptr;
  // Copies versions into this memory and out of it. Null for a device.
  std::unique_ptr<TierCopier> copier;
  std::vector<TierMemory*> peers;  // the memories of the other GPUs of the same model

  // Held by the call that evicts from this memory. Another call then waits for the memory that is
  // being freed, instead of finding nothing idle. Lock order: this mutex, `below->pressure`, the
  // mutex of TieredStore.
  Mutex pressure;

  // Guarded by the mutex of TieredStore.
  std::list<CachedVersion*> versions;  // attached
  size_t bytes = 0;                    // size of the attached versions
  // The equal shares and the configured shares with idle versions.
  TenantShare::Order equal_shares;
  TenantShare::Order configured_shares;
  size_t idle_bytes = 0;
  // Bytes of pinned versions in this memory, and of those that return to it when they are used.
  size_t pinned_bytes = 0;
  size_t owned_bytes = 0;          // reserved for tenants
  size_t equal_tenants = 0;        // number of equal shares with bytes or in `recent`
  size_t configured_bytes = 0;     // sum of the configured shares with bytes or in `recent`
  std::list<TenantShare*> recent;  // the shares with kept bytes
  // Copies of versions of other devices.
  std::list<std::shared_ptr<CachedVersion>> copies;
  size_t copy_bytes = 0;

  TenantShare::Order& OrderOf(const TenantShare& share) {
    return share.configured ? configured_shares : equal_shares;
  }
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_TIER_MEMORY_H_
