// SPDX-License-Identifier: Apache-2.0

// Reserves all memory of a job before its payload arrives, and the memory of its reply.
#ifndef CROUT_SERVER_ENGINE_ADMISSION_JOB_MEMORY_H_
#define CROUT_SERVER_ENGINE_ADMISSION_JOB_MEMORY_H_

#include <cstddef>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "kernels/memory.h"
#include "server/engine/engine.h"

namespace crout {

// Peak memory of a job, or of a part of a job, in bytes.
struct MemoryNeed {
  size_t device = 0;
  size_t host = 0;  // the reply and other results in host memory
};

// The reservations for a MemoryNeed.
struct JobMemory {
  Reservation device;
  Reservation host;

  // Moves the bytes of `part`, at most the bytes held, into separate reservations.
  JobMemory Split(const MemoryNeed& part) {
    return {device.Split(part.device), host.Split(part.host)};
  }
};

// Bytes of a reply and their reservation. A transport may hold them long after the call has ended.
// Members are destroyed in reverse order, so that the memory is freed before the budget counts it
// as free.
struct ReplyData {
  Reservation reservation;
  Buffer bytes;
};

// Reserve all of `need` or nothing for `tenant`, from the budget of `slot`'s device and from the
// host budget. If the device is the host, both are the host budget. TryReserve uses only free
// memory. Reserve evicts idle factors if necessary, and may block. It returns RESOURCE_EXHAUSTED
// under the conditions of FactorCache::ReserveOnDevice.
std::optional<JobMemory> TryReserve(Engine& engine, DeviceSlot& slot, const MemoryNeed& need,
                                    std::string_view tenant);
absl::StatusOr<JobMemory> Reserve(Engine& engine, DeviceSlot& slot, const MemoryNeed& need,
                                  std::string_view tenant);

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_ADMISSION_JOB_MEMORY_H_
