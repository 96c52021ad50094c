// SPDX-License-Identifier: Apache-2.0

#include "server/engine/admission/job_memory.h"

#include <utility>

#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// Splits a reservation of the host budget that covers both parts of `need`.
JobMemory Divide(Reservation both, const MemoryNeed& need) {
  Reservation host = both.Split(need.host);
  return {std::move(both), std::move(host)};
}

}  // namespace

std::optional<JobMemory> TryReserve(Engine& engine, DeviceSlot& slot, const MemoryNeed& need,
                                    std::string_view tenant) {
  if (slot.on_host()) {
    auto both = slot.budget->TryReserve(need.device + need.host, engine.cache.OwnerOnHost(tenant));
    if (!both) return std::nullopt;
    return Divide(*std::move(both), need);
  }
  auto host = engine.devices.host_budget().TryReserve(need.host, engine.cache.OwnerOnHost(tenant));
  if (!host) return std::nullopt;
  auto device = slot.budget->TryReserve(need.device, engine.cache.OwnerOnDevice(slot, tenant));
  if (!device) return std::nullopt;
  return JobMemory{*std::move(device), *std::move(host)};
}

absl::StatusOr<JobMemory> Reserve(Engine& engine, DeviceSlot& slot, const MemoryNeed& need,
                                  std::string_view tenant) {
  if (slot.on_host()) {
    CROUT_ASSIGN_OR_RETURN(Reservation both,
                           engine.cache.ReserveOnDevice(slot, need.device + need.host, tenant));
    return Divide(std::move(both), need);
  }
  JobMemory memory;
  // Check the device first. A job that the device cannot hold must not evict factors from host
  // memory.
  CROUT_RETURN_IF_ERROR(engine.cache.CheckReachable(slot, need.device, tenant));
  CROUT_ASSIGN_OR_RETURN(memory.host, engine.cache.ReserveOnHost(need.host, tenant));
  CROUT_ASSIGN_OR_RETURN(memory.device, engine.cache.ReserveOnDevice(slot, need.device, tenant));
  return memory;
}

}  // namespace crout
