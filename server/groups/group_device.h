// SPDX-License-Identifier: Apache-2.0

// The device of a group of ranks.
#ifndef CROUT_SERVER_GROUPS_GROUP_DEVICE_H_
#define CROUT_SERVER_GROUPS_GROUP_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/host/device/executor.h"
#include "server/groups/group_spec.h"
#include "server/groups/rank_group.h"

namespace crout {

// A host device whose memory is shared with its ranks, or copied to ranks on other machines, and
// whose methods run in them. All other
// operations (statistics, equilibration, residuals) run in this process, on the cores of the
// executor.
class GroupDevice : public Device {
 public:
  virtual RankGroup& group() = 0;
};

// Starts the ranks, waits until they have joined, and times a factorization. NOT_FOUND: crout-rank
// is not installed. UNAVAILABLE: the group cannot be formed. If machines join, returns before they
// do. `security`: for these machines.
absl::StatusOr<std::unique_ptr<GroupDevice>> MakeGroupDevice(
    const GroupSpec& spec, std::shared_ptr<host::Executor> executor,
    const RankSecurity& security = {});

}  // namespace crout

#endif  // CROUT_SERVER_GROUPS_GROUP_DEVICE_H_
