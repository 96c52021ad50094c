// SPDX-License-Identifier: Apache-2.0

#include "server/tenant_states.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace crout {
namespace {

constexpr size_t kMostTenants = 200;

void Add(const Engine& engine, const TenantLoad& load, TenantState& state) {
  state.calls += load.calls;
  state.factors += load.factors;
  state.device_bytes += load.bytes[static_cast<size_t>(Tier::kDevice)];
  state.host_bytes += load.bytes[static_cast<size_t>(Tier::kHost)];
  state.store_bytes += load.bytes[static_cast<size_t>(Tier::kStore)];
  state.pinned_bytes += load.pinned_bytes;
  state.bytes_in_flight += load.bytes_in_flight();
  for (const auto& slot : engine.devices.slots()) {
    const DeviceScheduler::TenantJobs jobs = slot->scheduler->JobsOf(load.tenant);
    state.queued_jobs += static_cast<int64_t>(jobs.queued);
    state.running_jobs += static_cast<int64_t>(jobs.running);
    state.device_seconds += jobs.seconds;
  }
}

}  // namespace

std::vector<TenantState> TenantStates(const Engine& engine, const std::set<std::string>& names) {
  std::vector<TenantState> states;
  if (names.empty()) return states;
  double seconds = 0;  // used by tenants that are not shown
  for (const auto& slot : engine.devices.slots()) seconds += slot->scheduler->used_seconds();
  std::set<std::string> shown;
  for (const std::string& name : names) {
    if (shown.size() == kMostTenants) break;
    shown.insert(name);
    TenantState& state = states.emplace_back();
    state.tenant = name;
    Add(engine, engine.tenant_loads.Of(name), state);
    seconds -= state.device_seconds;
  }
  TenantState& other = states.emplace_back();
  other.tenant = "other";
  for (const TenantLoad& load : engine.tenant_loads.Largest(std::numeric_limits<size_t>::max())) {
    if (shown.count(load.tenant) == 0) Add(engine, load, other);
  }
  // Includes tenants without a load. Rounding must not make it negative.
  other.device_seconds = std::max(seconds, 0.0);
  return states;
}

}  // namespace crout
