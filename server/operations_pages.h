// SPDX-License-Identifier: Apache-2.0

// The pages of the metrics port, for those who run the daemon.
#ifndef CROUT_SERVER_OPERATIONS_PAGES_H_
#define CROUT_SERVER_OPERATIONS_PAGES_H_

#include <functional>
#include <string>
#include <string_view>

#include "server/auth/access.h"
#include "server/auth/identities.h"
#include "server/net/http_page.h"
#include "server/observability/metrics/metrics.h"

namespace crout {

// /         the status page that `status` makes
// /metrics  the text exposition
// /healthz  200 while the process answers at all
// /readyz   200 while `ready`, 503 otherwise: before it serves, while it drains, without a device
//
// `access` is that to the first two: with Access::kRoles the status page takes the role kAdmin and
// the metrics kMetrics, and `admit` says whether a peer has a role, as HttpRoute::admit.
//
// `metrics` and what the functions refer to outlive the pages. `ready` and `admit` do not block.
HttpRoutes OperationsPages(const Metrics& metrics, std::function<bool()> ready,
                           std::function<std::string()> status, Access access,
                           std::function<HttpAdmission(Role, const HttpCaller&)> admit);

}  // namespace crout

#endif  // CROUT_SERVER_OPERATIONS_PAGES_H_
