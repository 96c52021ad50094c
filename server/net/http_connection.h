// SPDX-License-Identifier: Apache-2.0

// One peer of an HttpServer.
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
#include "server/net/page_maker.h"

namespace crout {

// What connections share; outlives them.
struct HttpSite {
  const HttpRoutes routes;
  const HttpLimits limits;
  PageMaker maker;
  HttpTlsContext tls = nullptr;  // of connections that begin now; null: they are plain
};

// Reads a request, answers it, and so on until the peer or a limit ends it. Lives while an
// operation of its own is pending or its owner keeps it. Used on one thread alone.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  // What the owner is told: a reply is out and the next request is awaited; the connection ended.
  struct Events {
    std::function<void(HttpConnection*)> answered;
    std::function<void(HttpConnection*)> ended;
  };

  HttpConnection(boost::asio::ip::tcp::socket socket, HttpSite* site, const Events* events);
  HttpConnection(const HttpConnection&) = delete;  // Pending operations refer to it.
  HttpConnection& operator=(const HttpConnection&) = delete;

  // Once, after construction.
  void Begin();
  // Ends it at once.
  void Close();
  // Whether it awaits a request, or the rest of one, or to hear late that it is refused.
  bool awaits_request() const { return awaits_request_; }

 private:
  using Error = boost::beast::error_code;
  using Body = boost::beast::http::span_body<const char>;

  void Shake();
  void AwaitRequest();
  void ReadRequest();
  void Answer();
  void AnswerRoute(const HttpRoute& route);
  void RefuseLate(HttpAdmission admission);
  void Refuse(boost::beast::http::status status, std::string_view reason = "");
  void Send(std::shared_ptr<const MadePage> page);
  void Sent();
  void Leave();
  void Linger();

  HttpSite* const site_;
  const Events* const events_;
  const std::string peer_;  // host:port
  HttpStream stream_;
  boost::asio::steady_timer pause_;
  boost::beast::flat_buffer buffer_;
  std::array<char, 4096> discarded_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::empty_body>> parser_;
  std::shared_ptr<const MadePage> page_;  // what reply_ shows
  boost::beast::http::response<Body> reply_;
  std::optional<boost::beast::http::response_serializer<Body>> serializer_;
  std::vector<std::string> certificate_names_;  // of the peer
  bool plain_ = false;                          // it speaks no TLS, though it should
  bool awaits_request_ = true;
  bool head_ = false;
  bool gzip_ = false;
  bool keep_alive_ = false;
  bool closed_ = false;
};

}  // namespace crout

#endif  // CROUT_SERVER_NET_HTTP_CONNECTION_H_
