// SPDX-License-Identifier: Apache-2.0

#ifndef CROUT_SERVER_TENANT_STATES_H_
#define CROUT_SERVER_TENANT_STATES_H_

#include <set>
#include <string>
#include <vector>

#include "server/engine/engine.h"
#include "server/observability/metrics/state.h"

namespace crout {

// Returns the states of the tenants `names`, and their sum over all other tenants as "other". Only
// configured tenants become labels of metrics, because callers may invent others. Empty if `names`
// is. Names beyond the first 200 count as other tenants.
std::vector<TenantState> TenantStates(const Engine& engine, const std::set<std::string>& names);

}  // namespace crout

#endif  // CROUT_SERVER_TENANT_STATES_H_
