// SPDX-License-Identifier: Apache-2.0

// What the log says first.
#ifndef CROUT_SERVER_START_LOG_H_
#define CROUT_SERVER_START_LOG_H_

#include <string>
#include <vector>

#include "server/config.h"
#include "server/rpc/core.h"

namespace crout {

// The addresses that were bound.
struct BoundAddresses {
  std::vector<std::string> listen;
  std::string metrics;
};

// One event "start" that says all: version, addresses, TLS, devices, memory and limits; and an
// event "device" for each device, with what it is.
void LogStart(const Config& config, const BoundAddresses& addresses, const ServerCore& core);

}  // namespace crout

#endif  // CROUT_SERVER_START_LOG_H_
