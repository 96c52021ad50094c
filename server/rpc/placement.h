// SPDX-License-Identifier: Apache-2.0

// Chooses the device for a job.
#ifndef CROUT_SERVER_RPC_PLACEMENT_H_
#define CROUT_SERVER_RPC_PLACEMENT_H_

#include <string>

#include "kernels/util/status_macros.h"
#include "server/rpc/upload_call.h"

namespace crout {

// Creates a job's step on the device named `device`. If `device` is empty, chooses the device that
// is expected to finish the job first (DevicePool::Choose). make(DeviceSlot&) creates the step for
// one device and returns an absl::StatusOr<std::unique_ptr<Step>>; it may be called for several
// devices.
template <class Make>
auto PlaceStep(ServerCore& core, const std::string& device, Make make)
    -> decltype(make(std::declval<DeviceSlot&>())) {
  const auto demand = [&](DeviceSlot& slot) -> absl::StatusOr<JobDemand> {
    CROUT_ASSIGN_OR_RETURN(const auto step, make(slot));
    return DemandOf(*step);
  };
  CROUT_ASSIGN_OR_RETURN(DeviceSlot * slot, core.devices.Choose(device, demand));
  return make(*slot);
}

}  // namespace crout

#endif  // CROUT_SERVER_RPC_PLACEMENT_H_
