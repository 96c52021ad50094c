// SPDX-License-Identifier: Apache-2.0

// Pages and routes of an HTTP server.
#ifndef CROUT_SERVER_NET_HTTP_PAGE_H_
#define CROUT_SERVER_NET_HTTP_PAGE_H_

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace crout {

// A reply.
struct HttpPage {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// The request's path and the peer's credentials.
struct HttpCaller {
  std::string_view path;
  std::string_view peer;           // host:port
  std::string_view authorization;  // value of the header; "" if it is absent
  // Names in a verified client certificate: its SPIFFE ID, or its DNS names.
  std::vector<std::string> certificate_names;
};

// Result of the access check for a page.
struct HttpAdmission {
  unsigned status = 200;               // 200: admitted; 401: unknown caller; 403: not permitted
  std::string advice;                  // message that states how to get access
  std::chrono::milliseconds after{0};  // delay before a refusal is sent
};

// The handler of one path.
//
// By default, `make` generates the page on the connections' thread. If `may_block` is set, because
// `make` waits for a lock or a device, it runs on a separate thread. Requests that arrive meanwhile
// share the next generated page, so any number of requests costs one page at a time.
//
// `admit` checks the peer's access and must not block. If it is not set, every peer may read the
// page.
struct HttpRoute {
  std::function<HttpPage()> make;
  bool may_block = false;
  std::function<HttpAdmission(const HttpCaller&)> admit = nullptr;
};

// Keyed by path, without the query.
using HttpRoutes = std::map<std::string, HttpRoute, std::less<>>;

}  // namespace crout

#endif  // CROUT_SERVER_NET_HTTP_PAGE_H_
