// SPDX-License-Identifier: Apache-2.0

// Logs the configuration at startup.
#ifndef CROUT_SERVER_START_LOG_H_
#define CROUT_SERVER_START_LOG_H_

#include <string>
#include <vector>

#include "server/config.h"
#include "server/rpc/core.h"

namespace crout {

// The addresses that were bound, with their ports.
struct BoundAddresses {
  std::vector<std::string> listen;
  std::string metrics;
};

// Logs one event "daemon_started" with version, addresses, TLS, devices, memory and limits, and one
// event "device_opened" with the properties of each device.
void LogStart(const Config& config, const BoundAddresses& addresses, const ServerCore& core);

}  // namespace crout

#endif  // CROUT_SERVER_START_LOG_H_
