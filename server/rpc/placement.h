// SPDX-License-Identifier: Apache-2.0

// Chooses the device of a job.
#ifndef CROUT_SERVER_RPC_PLACEMENT_H_
#define CROUT_SERVER_RPC_PLACEMENT_H_

#include <string>

#include "kernels/util/status_macros.h"
#include "server/rpc/upload_call.h"

namespace crout {

// make(DeviceSlot&), an absl::StatusOr<std::unique_ptr<Step>>, gives the job's part as it would be
// on a device. Its result on the device that is named, or, for "", on the one where
// the job is expected to be done first (DevicePool::Choose).
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
