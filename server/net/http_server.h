// SPDX-License-Identifier: Apache-2.0

// A small HTTP/1.1 server for the daemon's pages: GET and HEAD of a few paths.
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

// Limits for peers. They bound the memory and the time of each connection, so that no peer can
// delay others.
struct HttpLimits {
  // A connection beyond this limit replaces the one that has been idle longest.
  size_t connections = 256;
  size_t header_bytes = 8192;               // largest header, including the request line
  std::chrono::milliseconds request{5000};  // from a request's first byte to its last
  std::chrono::milliseconds idle{60000};    // between a reply and the next request
  std::chrono::milliseconds reply{10000};   // until the peer has received the reply
};

// Certificates of a TLS server and verification of clients, in PEM.
struct HttpTls {
  std::string identity;      // private key, then the certificate chain
  std::string client_roots;  // roots of client certificates; "": request none
  bool client_certificates_required = false;
};

// Serves GET and HEAD of `routes`, compressed with gzip if the peer accepts it. Errors: 400 for
// malformed HTTP and for plaintext on a TLS port, 401 or 403 for a peer that the route does not
// admit, 404 for another path, 405 for another method, 431 for a header that is too large.
//
// Supports HTTP/1.1 keep-alive. Does not read request bodies. Serves until destroyed, on two
// threads: one for the connections and one for pages that may block.
class HttpServer {
 public:
  // Binds `address`, "host:port"; port 0 picks a free port. Without `tls` the server is plaintext.
  // INVALID_ARGUMENT for a malformed address or invalid `tls`; UNAVAILABLE if it cannot bind.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& address,
                                                           HttpRoutes routes,
                                                           const HttpLimits& limits = {},
                                                           const std::optional<HttpTls>& tls = {});
  // Waits for pages that are being generated.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;  // It owns a listening socket.
  HttpServer& operator=(const HttpServer&) = delete;

  // Uses `tls` for new connections of a TLS server. If `tls` is invalid, changes nothing and
  // returns INVALID_ARGUMENT. Thread-safe.
  absl::Status Renew(const HttpTls& tls);

  // The address given to Start(), with the port that was bound.
  const std::string& address() const { return address_; }

 private:
  class Listener;
  HttpServer(std::unique_ptr<Listener> listener, std::string address);

  std::unique_ptr<Listener> listener_;
  const std::string address_;
};

}  // namespace crout

#endif  // CROUT_SERVER_NET_HTTP_SERVER_H_
