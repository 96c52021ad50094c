// SPDX-License-Identifier: Apache-2.0

// A client for one HTTP server, which may be unresponsive, slow or malicious.
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
  std::string path;  // empty, or starts with "/"
};

// Parses "http://host:port" or "http://host:port/path". An IPv6 address needs brackets.
// INVALID_ARGUMENT for any other text.
absl::StatusOr<HttpUrl> ParseHttpUrl(std::string_view url);

// Posts documents, each on a new connection. Call Post() from one thread; Stop() is thread-safe.
class HttpPoster {
 public:
  explicit HttpPoster(HttpUrl url);
  // Waits for a name lookup in progress.
  ~HttpPoster();
  HttpPoster(const HttpPoster&) = delete;  // Stop() may run in another thread.
  HttpPoster& operator=(const HttpPoster&) = delete;

  // Returns OK if the server answers with a 2xx status. The reply's body is discarded; redirections
  // are not followed. UNAVAILABLE for any other reply or error, or if the exchange takes longer
  // than `limit`. CANCELLED after Stop().
  absl::Status Post(const std::string& content_type, std::string body,
                    std::chrono::milliseconds limit);

  // Ends a running Post() and refuses later ones.
  void Stop();

 private:
  struct Context;  // hides Asio from this header

  const HttpUrl url_;
  std::atomic<bool> stopped_ = false;
  const std::unique_ptr<Context> context_;
};

}  // namespace crout

#endif  // CROUT_SERVER_NET_HTTP_POST_H_
