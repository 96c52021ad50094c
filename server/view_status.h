// SPDX-License-Identifier: Apache-2.0

// Collects the data of the status page.
#ifndef CROUT_SERVER_VIEW_STATUS_H_
#define CROUT_SERVER_VIEW_STATUS_H_

#include "server/observability/metrics/state.h"
#include "server/observability/status/status_view.h"
#include "server/rpc/core.h"

namespace crout {

// Returns the data of the status page at this moment. `state` is a snapshot taken just before.
// `ready`: whether the daemon accepts calls. Acquires locks of the components of `core`.
StatusView ViewStatus(const ServerCore& core, ServerState state, bool ready);

}  // namespace crout

#endif  // CROUT_SERVER_VIEW_STATUS_H_
