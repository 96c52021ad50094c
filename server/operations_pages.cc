// SPDX-License-Identifier: Apache-2.0

#include "server/operations_pages.h"

#include <utility>

namespace crout {
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

}  // namespace crout
