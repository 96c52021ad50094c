#include "server/operations_pages.h"

#include <utility>

#include "crout_version.h"

namespace crout {
namespace {

// Reserved for a status page.
HttpPage Index() {
  return {.content_type = "text/html; charset=utf-8",
          .body = "<!doctype html><title>croutd</title><h1>croutd " CROUT_VERSION
                  "</h1>\n"
                  "<p><a href=\"/metrics\">/metrics</a>: for Prometheus\n"
                  "<p><a href=\"/healthz\">/healthz</a>: whether the process answers\n"
                  "<p><a href=\"/readyz\">/readyz</a>: whether it takes calls\n"};
}

}  // namespace

HttpRoutes OperationsPages(const Metrics& metrics, std::function<bool()> ready) {
  HttpRoutes routes;
  routes["/"] = {.make = Index};
  // Gauges are read under the locks of caches and schedulers: not on the thread of the connections.
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
  return routes;
}

}  // namespace crout
