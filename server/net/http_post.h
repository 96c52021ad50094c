// SPDX-License-Identifier: Apache-2.0

// A client for one HTTP server, which may be silent, slow or hostile.
#ifndef CROUT_SERVER_NET_HTTP_POST_H_
#define CROUT_SERVER_NET_HTTP_POST_H_

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/net/listen_address.h"

namespace crout {

struct HttpUrl {
  HostPort address;
  std::string path;  // empty, or "/" and more
};

// Reads "http://host:port" or "http://host:port/path"; an IPv6 address stands in brackets.
// INVALID_ARGUMENT for anything else.
absl::StatusOr<HttpUrl> ParseHttpUrl(std::string_view url);

// Posts documents, each on a connection of its own. Post() is for one thread, Stop() for any.
class HttpPoster {
 public:
  explicit HttpPoster(HttpUrl url);
  // Waits for the resolver, if it looks a name up.
  ~HttpPoster();
  HttpPoster(const HttpPoster&) = delete;  // Stop() may run meanwhile.
  HttpPoster& operator=(const HttpPoster&) = delete;

  // OK once the server has answered with a status of 2xx; what it says besides is not kept, and no
  // redirection is followed. UNAVAILABLE for everything else, also where it took longer than
  // `limit` in all, and CANCELLED after Stop().
  absl::Status Post(const std::string& content_type, std::string body,
                    std::chrono::milliseconds limit);

  // Ends a Post that runs, and refuses others.
  void Stop();

 private:
  struct Context;  // keeps Asio out of this header

  const HttpUrl url_;
  std::atomic<bool> stopped_ = false;
  const std::unique_ptr<Context> context_;
};

}  // namespace crout

#endif  // CROUT_SERVER_NET_HTTP_POST_H_
