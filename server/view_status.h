// SPDX-License-Identifier: Apache-2.0

// Takes the view of the daemon that the status page shows.
#ifndef CROUT_SERVER_VIEW_STATUS_H_
#define CROUT_SERVER_VIEW_STATUS_H_

#include "server/observability/metrics/state.h"
#include "server/observability/status/status_view.h"
#include "server/rpc/core.h"

namespace crout {

// As of now, with `state`, which was taken just before; `ready`: whether calls are taken.
StatusView ViewStatus(const ServerCore& core, ServerState state, bool ready);

}  // namespace crout

#endif  // CROUT_SERVER_VIEW_STATUS_H_
