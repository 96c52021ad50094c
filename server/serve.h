// SPDX-License-Identifier: Apache-2.0

// A daemon's life: start, serve until a signal comes or no device is left, drain, exit code.
#ifndef CROUT_SERVER_SERVE_H_
#define CROUT_SERVER_SERVE_H_

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "server/config.h"

namespace crout {

// SIGTERM and SIGINT, blocked in every thread and taken here: no code runs in a signal handler.
// Construct it before any thread starts.
class StopSignals {
 public:
  StopSignals();

  // Whether one came within `milliseconds`; who sent it gets a line in the log.
  bool Wait(int milliseconds) const;
};

using OpenDevicesFunction =
    absl::FunctionRef<absl::StatusOr<std::vector<std::unique_ptr<Device>>>(const Config&)>;

// Prints the ready line on standard output, and tells the service manager when it is ready and when
// it begins to drain. Returns the exit code: 0 after a drain that a signal asked for; 1 if the
// daemon could not start or lost its last device. Does not return if jobs outlive the drain limit:
// the process then exits with that code.
int Serve(const Config& config, OpenDevicesFunction open_devices, const StopSignals& signals);

}  // namespace crout

#endif  // CROUT_SERVER_SERVE_H_
