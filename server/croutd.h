// SPDX-License-Identifier: Apache-2.0

// The daemon's main program, from arguments to exit code.
#ifndef CROUT_SERVER_CROUTD_H_
#define CROUT_SERVER_CROUTD_H_

#include "server/serve.h"

namespace crout {

// Runs `croutd token` if that is the command. Otherwise parses the settings, serves until SIGTERM
// or SIGINT, then drains. Returns the exit code: 0 after a drain, 1 if the daemon could not start
// or lost its last device, 2 for bad usage. Call it before any thread starts. It re-executes the
// process if OpenMP's environment variables must be set.
int RunCroutd(int argc, char** argv, OpenDevicesFunction open_devices);

}  // namespace crout

#endif  // CROUT_SERVER_CROUTD_H_
