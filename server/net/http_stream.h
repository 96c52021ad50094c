// SPDX-License-Identifier: Apache-2.0

// The byte stream of a connection, with or without TLS.
#ifndef CROUT_SERVER_NET_HTTP_STREAM_H_
#define CROUT_SERVER_NET_HTTP_STREAM_H_

#include <openssl/ssl.h>

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/net/http_server.h"

namespace crout {

using HttpTlsContext = std::shared_ptr<boost::asio::ssl::context>;

// Creates a context for TLS 1.2 or newer with forward secrecy and authenticated encryption, without
// resumption or renegotiation. INVALID_ARGUMENT if `tls` is invalid.
absl::StatusOr<HttpTlsContext> MakeHttpTlsContext(const HttpTls& tls);

// Returns the names in the peer's verified certificate: its SPIFFE ID if it has one, else its DNS
// names. Empty without a certificate.
std::vector<std::string> CertificateNames(SSL* connection);

// A Beast AsyncStream: plaintext until BeginTls(). Not thread-safe.
class HttpStream {
 public:
  using executor_type = boost::beast::tcp_stream::executor_type;
  using Tls = boost::asio::ssl::stream<boost::beast::tcp_stream&>;

  explicit HttpStream(boost::asio::ip::tcp::socket socket) : tcp_(std::move(socket)) {}
  HttpStream(const HttpStream&) = delete;  // tls_ refers to tcp_.
  HttpStream& operator=(const HttpStream&) = delete;

  executor_type get_executor() { return tcp_.get_executor(); }
  // The TCP stream. Its timeouts apply with and without TLS.
  boost::beast::tcp_stream& tcp() { return tcp_; }

  Tls& BeginTls(const HttpTlsContext& context) { return tls_.emplace(tcp_, *context); }
  // Returns null if the stream is plaintext.
  Tls* tls() { return tls_ ? &*tls_ : nullptr; }

  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) return (void)tls_->async_read_some(buffers, std::forward<Handler>(handler));
    tcp_.async_read_some(buffers, std::forward<Handler>(handler));
  }
  template <class Buffers, class Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) return (void)tls_->async_write_some(buffers, std::forward<Handler>(handler));
    tcp_.async_write_some(buffers, std::forward<Handler>(handler));
  }

 private:
  boost::beast::tcp_stream tcp_;
  std::optional<Tls> tls_;
};

}  // namespace crout

#endif  // CROUT_SERVER_NET_HTTP_STREAM_H_
