// What the log says first.
#ifndef CROUT_SERVER_START_LOG_H_
#define CROUT_SERVER_START_LOG_H_

#include "server/config.h"
#include "server/rpc/core.h"

namespace crout {

// One event each: "start" (version), "device" for each device, "limits".
void LogStart(const Config& config, const ServerCore& core);

}  // namespace crout

#endif  // CROUT_SERVER_START_LOG_H_
