// SPDX-License-Identifier: Apache-2.0

// Opens the devices that --devices names.
#ifndef CROUT_SERVER_DEVICES_H_
#define CROUT_SERVER_DEVICES_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "server/config.h"

namespace crout {

// In the order named, GPUs by index. INVALID_ARGUMENT for a name that cannot be, NOT_FOUND for a
// GPU that is not there.
absl::StatusOr<std::vector<std::unique_ptr<Device>>> OpenDevices(const Config& config);

}  // namespace crout

#endif  // CROUT_SERVER_DEVICES_H_
