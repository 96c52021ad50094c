// What an HTTP server shows.
#ifndef CROUT_SERVER_HTTP_HTTP_PAGE_H_
#define CROUT_SERVER_HTTP_HTTP_PAGE_H_

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace crout {

struct HttpPage {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// How one path is answered. A page that may block (on a lock, on a device) is made on a thread of
// its own; requests that come while it is being made share the next one, so that any number of
// them cost one page at a time. The others are made at once, on the thread that serves everybody.
//
// `admit` says whether the sender of an Authorization header ("" without one) may see the page:
// 200, 401 for one that is not known, 403 for one that may not. Unset: everybody may. It does not
// block.
struct HttpRoute {
  std::function<HttpPage()> make;
  bool may_block = false;
  std::function<unsigned(std::string_view authorization)> admit = nullptr;
};

// By path, without query.
using HttpRoutes = std::map<std::string, HttpRoute, std::less<>>;

}  // namespace crout

#endif  // CROUT_SERVER_HTTP_HTTP_PAGE_H_
