// SPDX-License-Identifier: Apache-2.0

// One connection of an HttpServer.
#ifndef CROUT_SERVER_NET_HTTP_CONNECTION_H_
#define CROUT_SERVER_NET_HTTP_CONNECTION_H_

#include <array>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/span_body.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/net/http_page.h"
#include "server/net/http_server.h"
#include "server/net/http_stream.h"
#include "server/net/page_renderer.h"

namespace crout {

// State that all connections of a server share. Must outlive them.
struct HttpServerState {
  const HttpRoutes routes;
  const HttpLimits limits;
  PageRenderer renderer;
  HttpTlsContext tls = nullptr;  // for new connections; null: plaintext
};

// Reads and answers requests until the peer or a limit ends the connection. Lives while one of its
// operations is pending or its owner holds it. Not thread-safe.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  // Notifications to the owner. `answered`: the next request is awaited. `ended`: the connection
  // closed.
  struct Events {
    std::function<void(HttpConnection*)> answered;
    std::function<void(HttpConnection*)> ended;
  };

  HttpConnection(boost::asio::ip::tcp::socket socket, HttpServerState* server,
                 const Events* events);
  HttpConnection(const HttpConnection&) = delete;  // Pending operations refer to it.
  HttpConnection& operator=(const HttpConnection&) = delete;

  // Starts the connection. Call it once.
  void Begin();
  // Closes the connection at once.
  void Close();
  // Returns true while the connection waits for a request or the rest of one, or delays a refusal.
  bool awaits_request() const { return awaits_request_; }

 private:
  using Error = boost::beast::error_code;
  using Body = boost::beast::http::span_body<const char>;

  void Handshake();
  void AwaitRequest();
  void ReadRequest();
  void Answer();
  void AnswerRoute(const HttpRoute& route);
  void RefuseAfterDelay(HttpAdmission admission);
  void Refuse(boost::beast::http::status status, std::string_view reason = "");
  void Send(std::shared_ptr<const RenderedPage> page);
  void Sent();
  void CloseGracefully();
  void Linger();

  HttpServerState* const server_;
  const Events* const events_;
  const std::string peer_;  // host:port
  HttpStream stream_;
  boost::asio::steady_timer pause_;  // delay of a refusal
  boost::beast::flat_buffer buffer_;
  std::array<char, 4096> discarded_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::empty_body>> parser_;
  std::shared_ptr<const RenderedPage> page_;  // keeps the body of reply_ alive
  boost::beast::http::response<Body> reply_;
  std::optional<boost::beast::http::response_serializer<Body>> serializer_;
  std::vector<std::string> certificate_names_;  // the peer's
  bool plain_ = false;                          // the peer does not speak TLS on a TLS port
  bool awaits_request_ = true;
  bool head_ = false;
  bool gzip_ = false;
  bool keep_alive_ = false;
  bool closed_ = false;
};

}  // namespace crout

#endif  // CROUT_SERVER_NET_HTTP_CONNECTION_H_
