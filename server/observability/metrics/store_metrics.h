// SPDX-License-Identifier: Apache-2.0

// The metrics of the factor store.
#ifndef CROUT_SERVER_OBSERVABILITY_METRICS_STORE_METRICS_H_
#define CROUT_SERVER_OBSERVABILITY_METRICS_STORE_METRICS_H_

#include <prometheus/metric_family.h>

#include <vector>

#include "server/engine/store/store_state.h"

namespace crout {

// Returns the families crout_store_*.
std::vector<prometheus::MetricFamily> StoreFamilies(const StoreState& state);

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_METRICS_STORE_METRICS_H_
