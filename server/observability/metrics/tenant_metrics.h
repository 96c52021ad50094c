// SPDX-License-Identifier: Apache-2.0

// Metrics of configured tenants.
#ifndef CROUT_SERVER_OBSERVABILITY_METRICS_TENANT_METRICS_H_
#define CROUT_SERVER_OBSERVABILITY_METRICS_TENANT_METRICS_H_

#include <prometheus/metric_family.h>

#include <vector>

#include "server/observability/metrics/state.h"

namespace crout {

// Builds the families crout_tenant_* of one scrape. Returns no family if there are no tenants.
std::vector<prometheus::MetricFamily> TenantFamilies(const std::vector<TenantState>& tenants);

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_METRICS_TENANT_METRICS_H_
