// SPDX-License-Identifier: Apache-2.0

// The memory of a job: all of it is reserved before its payload arrives.
#ifndef CROUT_SERVER_RPC_ADMISSION_H_
#define CROUT_SERVER_RPC_ADMISSION_H_

#include <cstddef>
#include <optional>

#include "absl/status/statusor.h"
#include "server/rpc/core.h"

namespace crout {

// Bytes that a job, or a part of it, takes at its peak.
struct MemoryNeed {
  size_t device = 0;
  size_t host = 0;  // what it answers with
};

// The reservations of such bytes.
struct JobMemory {
  Reservation device;
  Reservation host;

  // Moves a part of it, at most what is held, into reservations of their own.
  JobMemory Split(const MemoryNeed& part) {
    return {device.Split(part.device), host.Split(part.host)};
  }
};

// All of it or nothing, on the budgets of `slot`'s device and of the host, which may be one.
// TryReserve takes what is free. Reserve evicts idle factors to make room, and may block:
// RESOURCE_EXHAUSTED as FactorCache::ReserveOnDevice.
std::optional<JobMemory> TryReserve(ServerCore& core, DeviceSlot& slot, const MemoryNeed& need);
absl::StatusOr<JobMemory> Reserve(ServerCore& core, DeviceSlot& slot, const MemoryNeed& need);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_ADMISSION_H_
