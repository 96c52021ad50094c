// SPDX-License-Identifier: Apache-2.0

// croutd: the daemon.
#include "server/croutd.h"
#include "server/devices.h"

int main(int argc, char** argv) { return crout::RunCroutd(argc, argv, crout::OpenDevices); }
