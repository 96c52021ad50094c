// SPDX-License-Identifier: Apache-2.0

// The status page: the daemon at a glance, for those who run it.
#ifndef CROUT_SERVER_OBSERVABILITY_STATUS_STATUS_PAGE_H_
#define CROUT_SERVER_OBSERVABILITY_STATUS_STATUS_PAGE_H_

#include <string>

#include "server/observability/status/status_view.h"

namespace crout {

// HTML in the syntax of XML, without scripts and without anything from elsewhere; it asks to be
// loaded anew every ten seconds. Its size is bounded by the view's.
std::string RenderStatusPage(const StatusView& view);

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_STATUS_STATUS_PAGE_H_
