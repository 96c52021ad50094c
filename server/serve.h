// SPDX-License-Identifier: Apache-2.0

// Runs a daemon: start, serve, drain, exit code.
#ifndef CROUT_SERVER_SERVE_H_
#define CROUT_SERVER_SERVE_H_

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/device.h"
#include "server/config.h"

namespace crout {

// Blocks SIGTERM and SIGINT in every thread and accepts them in Wait(), so that no code runs in a
// signal handler. Construct it before any thread starts.
class StopSignals {
 public:
  StopSignals();

  // Waits up to `milliseconds` for a signal. Returns true if one arrived, and logs its sender.
  bool Wait(int milliseconds) const;
};

using OpenDevicesFunction =
    absl::FunctionRef<absl::StatusOr<std::vector<std::shared_ptr<Device>>>(const Config&)>;

// Starts a daemon and serves until a stop signal arrives, the parent of `stop_with_parent` ends or
// the last device is lost. Then drains; a second signal cancels the remaining calls. Prints the
// ready line on standard output, and notifies the service manager when the daemon is ready and when
// it starts to drain.
//
// Returns the exit code: 0 after a drain for a signal or an ended parent; 1 if the daemon could not
// start or lost its last device. If jobs outlive the drain limit, the process exits with that code
// and this function does not return.
int Serve(const Config& config, OpenDevicesFunction open_devices, const StopSignals& signals);

// Sends `state`, lines such as "READY=1" or "STOPPING=1", to the datagram socket named by
// $NOTIFY_SOCKET: a path, or an abstract name after "@". Does nothing if the variable is not set.
// Drops the message if it cannot be sent. Does not block. Returns true if the message was sent.
bool NotifyServiceManager(absl::string_view state);

}  // namespace crout

#endif  // CROUT_SERVER_SERVE_H_
