// What an HTTP server shows.
#ifndef CROUT_SERVER_HTTP_HTTP_PAGE_H_
#define CROUT_SERVER_HTTP_HTTP_PAGE_H_

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

// What a peer shows.
struct HttpCaller {
  std::string_view authorization;  // the header, "" without one
  // Of a client certificate that was verified: its SPIFFE ID, or its DNS names.
  std::vector<std::string> certificate_names;
};

// How one path is answered. A page that may block (on a lock, on a device) is made on a thread of
// its own; requests that come while it is being made share the next one, so that any number of
// them cost one page at a time. The others are made at once, on the thread that serves everybody.
//
// `admit` says whether a peer may see the page: status 200 then, 401 for one that is not known, 403
// for one that may not, each with what to do. Unset: everybody may. It does not block.
struct HttpRoute {
  std::function<HttpPage()> make;
  bool may_block = false;
  std::function<HttpPage(const HttpCaller&)> admit = nullptr;
};

// By path, without query.
using HttpRoutes = std::map<std::string, HttpRoute, std::less<>>;

}  // namespace crout

#endif  // CROUT_SERVER_HTTP_HTTP_PAGE_H_
