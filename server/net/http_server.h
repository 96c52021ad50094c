// SPDX-License-Identifier: Apache-2.0

// A small HTTP/1.1 server for pages about the daemon: GET and HEAD of a few paths.
#ifndef CROUT_SERVER_NET_HTTP_SERVER_H_
#define CROUT_SERVER_NET_HTTP_SERVER_H_

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "server/net/http_page.h"

namespace crout {

// What peers may take. No peer can hold more than one connection's worth, and none delays another.
struct HttpLimits {
  // A connection beyond these takes the place of the one that has been silent for longest.
  size_t connections = 256;
  size_t header_bytes = 8192;               // of a request, its first line included
  std::chrono::milliseconds request{5000};  // from a request's first byte to its last
  std::chrono::milliseconds idle{60000};    // between a reply and the next request
  std::chrono::milliseconds reply{10000};   // until a peer has taken its reply
};

// What a server with TLS shows and asks for, texts in PEM.
struct HttpTls {
  std::string identity;      // the key, then its certificate and those up to a root
  std::string client_roots;  // of clients' certificates; "": clients are not asked for one
  bool client_certificates_required = false;
};

// Answers GET and HEAD of `routes`, packed with gzip where the peer takes that; any other path with
// 404, any other method with 405, what a route does not admit with 401 or 403, what is no HTTP with
// 400, too large a header with 431. With TLS a plain request is answered with 400, and nothing
// else. Keeps connections open as HTTP/1.1 says; reads no bodies. Serves until destroyed, on two
// threads of its own, whose stacks are as large as the system makes them by default.
class HttpServer {
 public:
  // Binds `address`, "host:port", where port 0 picks a free one. INVALID_ARGUMENT for a malformed
  // address and for a bad `tls`, UNAVAILABLE if it cannot be bound. Without `tls` it is plain.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& address,
                                                           HttpRoutes routes,
                                                           const HttpLimits& limits = {},
                                                           const std::optional<HttpTls>& tls = {});
  // Waits for pages that are being made.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;  // It owns a listening socket.
  HttpServer& operator=(const HttpServer&) = delete;

  // New connections show and ask for these from now on; of a server with TLS. INVALID_ARGUMENT, and
  // nothing is changed, where they are not good. Thread-safe.
  absl::Status Renew(const HttpTls& tls);

  // As given to Start, with the port that was bound.
  const std::string& address() const { return address_; }

 private:
  class Listener;
  HttpServer(std::unique_ptr<Listener> listener, std::string address);

  std::unique_ptr<Listener> listener_;
  const std::string address_;
};

}  // namespace crout

#endif  // CROUT_SERVER_NET_HTTP_SERVER_H_
