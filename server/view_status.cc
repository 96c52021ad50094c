// SPDX-License-Identifier: Apache-2.0

#include "server/view_status.h"

#include <utility>

#include "crout_version.h"
#include "kernels/util/clock.h"

namespace crout {
namespace {

constexpr size_t kOpenCalls = 20;  // number of calls shown

}  // namespace

StatusView ViewStatus(const ServerCore& core, ServerState state, bool ready) {
  StatusView view;
  view.version = CROUT_VERSION;
  view.now = WallNow();
  view.uptime = view.now - core.start_time;
  view.ready = ready;
  for (const auto& slot : core.engine.devices.slots()) {
    const DeviceInfo& info = slot->device->info();
    view.devices.push_back({.name = info.name, .description = info.description});
  }
  view.queue_capacity = static_cast<int64_t>(core.limits.queue_capacity);
  view.state = std::move(state);
  view.cache = core.metrics.ReadCache();
  view.calls_in_flight = core.calls.in_flight();
  view.open_calls = core.calls.Oldest(kOpenCalls);
  view.slow_calls = core.recent_work.SlowCalls();
  for (size_t i = 0; i < kJobPhaseNames.size(); ++i) {
    view.phases.push_back({kJobPhaseNames[i], core.metrics.ReadPhase(static_cast<JobPhase>(i))});
  }
  for (size_t i = 0; i < kMethodNames.size(); ++i) {
    view.methods.push_back({kMethodNames[i], core.metrics.ReadRequests(static_cast<Method>(i))});
  }
  view.last_run = core.recent_work.run();
  return view;
}

}  // namespace crout
