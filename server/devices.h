// SPDX-License-Identifier: Apache-2.0

// Opens the devices that --devices, --group and --out-of-core-memory name.
#ifndef CROUT_SERVER_DEVICES_H_
#define CROUT_SERVER_DEVICES_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/host/device/executor.h"
#include "server/config.h"

namespace crout {

// Opens each GPU in config.devices once, in that order, then the host if it is named, then the
// groups, and then the out-of-core devices of the GPUs.
// INVALID_ARGUMENT for a malformed name; NOT_FOUND for a GPU that does not exist; otherwise the
// error of the device that cannot be opened.
absl::StatusOr<std::vector<std::shared_ptr<Device>>> OpenDevices(const Config& config);

// Adds the out-of-core device of each GPU in `devices`, with `gpu_bytes` of the GPU's memory.
// FAILED_PRECONDITION without a GPU; RESOURCE_EXHAUSTED if a GPU lacks the memory.
absl::Status AddOutOfCoreDevices(size_t gpu_bytes, std::shared_ptr<host::Executor> executor,
                                 std::vector<std::shared_ptr<Device>>& devices);

}  // namespace crout

#endif  // CROUT_SERVER_DEVICES_H_
