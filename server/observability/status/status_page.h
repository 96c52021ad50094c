// SPDX-License-Identifier: Apache-2.0

// The operators' status page.
#ifndef CROUT_SERVER_OBSERVABILITY_STATUS_STATUS_PAGE_H_
#define CROUT_SERVER_OBSERVABILITY_STATUS_STATUS_PAGE_H_

#include <string>

#include "server/observability/status/status_view.h"

namespace crout {

// Returns HTML in XML syntax without scripts or external resources. The page reloads every ten
// seconds. Its size is bounded by the size of the view.
std::string RenderStatusPage(const StatusView& view);

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_STATUS_STATUS_PAGE_H_
