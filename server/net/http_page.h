// SPDX-License-Identifier: Apache-2.0

// What an HTTP server shows.
#ifndef CROUT_SERVER_NET_HTTP_PAGE_H_
#define CROUT_SERVER_NET_HTTP_PAGE_H_

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace crout {

struct HttpPage {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// What a peer asks for, and shows.
struct HttpCaller {
  std::string_view path;
  std::string_view peer;           // host:port
  std::string_view authorization;  // the header, "" without one
  // Of a client certificate that was verified: its SPIFFE ID, or its DNS names.
  std::vector<std::string> certificate_names;
};

// Whether a peer may see a page.
struct HttpAdmission {
  unsigned status = 200;  // else 401 for one that is not known, 403 for one that may not
  std::string advice;     // what to do about that
  std::chrono::milliseconds after{0};  // how long it waits to hear it
};

// How one path is answered. A page that may block (on a lock, on a device) is made on a thread of
// its own; requests that come while it is being made share the next one, so that any number of
// them cost one page at a time. The others are made at once, on the thread that serves everybody.
//
// `admit` does not block. Unset: everybody may see the page.
struct HttpRoute {
  std::function<HttpPage()> make;
  bool may_block = false;
  std::function<HttpAdmission(const HttpCaller&)> admit = nullptr;
};

// By path, without query.
using HttpRoutes = std::map<std::string, HttpRoute, std::less<>>;

}  // namespace crout

#endif  // CROUT_SERVER_NET_HTTP_PAGE_H_
