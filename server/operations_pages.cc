// SPDX-License-Identifier: Apache-2.0

#include "server/operations_pages.h"

#include <utility>

#include "crout_version.h"
#include "kernels/util/clock.h"

namespace crout {
namespace {

constexpr size_t kOpenCalls = 20;  // number of calls shown

}  // namespace

HttpRoutes OperationsPages(const Metrics& metrics, std::function<bool()> ready,
                           std::function<std::string()> status, Access access,
                           std::function<HttpAdmission(Role, const HttpCaller&)> admit) {
  HttpRoutes routes;
  // These two pages acquire locks of the cache and the schedulers, so they must not be generated on
  // the thread of the connections.
  routes["/"] = {.make =
                     [status = std::move(status)] {
                       return HttpPage{.content_type = "text/html; charset=utf-8",
                                       .body = status()};
                     },
                 .may_block = true};
  routes["/metrics"] = {.make =
                            [&metrics] {
                              return HttpPage{
                                  .content_type = "text/plain; version=0.0.4; charset=utf-8",
                                  .body = metrics.Scrape()};
                            },
                        .may_block = true};
  routes["/healthz"] = {.make = [] { return HttpPage{.body = "ok\n"}; }};
  routes["/readyz"] = {.make = [ready = std::move(ready)] {
    return ready() ? HttpPage{.body = "ready\n"} : HttpPage{.status = 503, .body = "not ready\n"};
  }};
  if (access == Access::kOpen) return routes;
  for (const auto& [path, role] : {std::pair("/", Role::kAdmin), {"/metrics", Role::kMetrics}}) {
    if (access == Access::kOff) {
      routes.erase(path);
      continue;
    }
    routes[path].admit = [admit, role = role](const HttpCaller& caller) {
      return admit(role, caller);
    };
  }
  return routes;
}

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
  view.slow_calls = core.observer.recent_work().SlowCalls();
  for (size_t i = 0; i < kJobPhaseNames.size(); ++i) {
    view.phases.push_back({kJobPhaseNames[i], core.metrics.ReadPhase(static_cast<JobPhase>(i))});
  }
  for (size_t i = 0; i < kMethodNames.size(); ++i) {
    view.methods.push_back({kMethodNames[i], core.metrics.ReadRequests(static_cast<Method>(i))});
  }
  view.last_run = core.observer.recent_work().run();
  return view;
}

}  // namespace crout
