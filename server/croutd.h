// SPDX-License-Identifier: Apache-2.0

// The daemon's program, from its arguments to its exit code.
#ifndef CROUT_SERVER_CROUTD_H_
#define CROUT_SERVER_CROUTD_H_

#include "server/serve.h"

namespace crout {

// Runs `croutd token`; else parses the settings, serves until a signal comes, drains. Returns the
// exit code: 0 after a drain, 1 if the daemon could not start or lost its last device, 2 for bad
// usage. Call it before any thread takes signals; it starts the process anew where OpenMP's
// environment must be set.
int RunCroutd(int argc, char** argv, OpenDevicesFunction open_devices);

}  // namespace crout

#endif  // CROUT_SERVER_CROUTD_H_
