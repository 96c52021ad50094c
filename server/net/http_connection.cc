// SPDX-License-Identifier: Apache-2.0

#include "server/net/http_connection.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/net/compression.h"

namespace crout {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

// Time that a peer may keep sending unread data before the connection is closed.
constexpr std::chrono::seconds kLinger(1);
constexpr size_t kFirstRead = 1024;

std::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

// Returns the path of a request's target, which may be a complete URL (RFC 9112, 3.2.2).
std::string_view PathOf(std::string_view target) {
  constexpr std::string_view kScheme = "http://";
  if (target.starts_with(kScheme)) {
    const size_t path = target.find('/', kScheme.size());
    target = path == std::string_view::npos ? "/" : target.substr(path);
  }
  return target.substr(0, target.find('?'));
}

std::string NameOf(const asio::ip::tcp::socket& socket) {
  beast::error_code gone;
  const auto peer = socket.remote_endpoint(gone);
  if (gone) return "";
  const std::string host = peer.address().to_string();
  const bool brackets = peer.address().is_v6();
  return absl::StrCat(brackets ? "[" : "", host, brackets ? "]:" : ":", peer.port());
}

// Returns the status for a request that could not be read; nothing if the peer left or was too
// slow.
std::optional<http::status> RefusalOf(const beast::error_code& error) {
  if (error == http::error::end_of_stream || error == http::error::partial_message) {
    return std::nullopt;
  }
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return http::status::request_header_fields_too_large;
  }
  static const auto& http_errors = make_error_code(http::error::bad_method).category();
  if (error.category() == http_errors) return http::status::bad_request;
  return std::nullopt;
}

}  // namespace

HttpConnection::HttpConnection(asio::ip::tcp::socket socket, HttpServerState* server,
                               const Events* events)
    : server_(server),
      events_(events),
      peer_(NameOf(socket)),
      stream_(std::move(socket)),
      pause_(stream_.get_executor()),
      buffer_(server->limits.header_bytes + kFirstRead) {}

void HttpConnection::Begin() {
  if (server_->tls == nullptr) return ReadRequest();
  stream_.tcp().expires_after(server_->limits.request);
  stream_.async_read_some(buffer_.prepare(kFirstRead),
                          [self = shared_from_this()](const Error& error, size_t bytes) {
                            if (error || self->closed_) return self->Close();
                            self->buffer_.commit(bytes);
                            self->Handshake();
                          });
}

// A peer that does not start with a TLS handshake record gets a plaintext error.
void HttpConnection::Handshake() {
  constexpr unsigned char kHandshake = 0x16;
  if (*static_cast<const unsigned char*>(buffer_.data().data()) != kHandshake) {
    plain_ = true;
    return ReadRequest();
  }
  stream_.BeginTls(server_->tls)
      .async_handshake(asio::ssl::stream_base::server, buffer_.data(),
                       [self = shared_from_this()](const Error& error, size_t used) {
                         if (error || self->closed_) return self->Close();
                         self->buffer_.consume(used);
                         self->certificate_names_ =
                             CertificateNames(self->stream_.tls()->native_handle());
                         self->ReadRequest();
                       });
}

void HttpConnection::AwaitRequest() {
  awaits_request_ = true;
  events_->answered(this);
  if (buffer_.size() > 0) return ReadRequest();  // The peer pipelines its requests.
  stream_.tcp().expires_after(server_->limits.idle);
  stream_.async_read_some(buffer_.prepare(kFirstRead),
                          [self = shared_from_this()](const Error& error, size_t bytes) {
                            if (error || self->closed_) return self->Close();
                            self->buffer_.commit(bytes);
                            self->ReadRequest();
                          });
}

void HttpConnection::ReadRequest() {
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(server_->limits.header_bytes));
  parser_->body_limit(std::numeric_limits<uint64_t>::max());  // Bodies are not read.
  stream_.tcp().expires_after(
      server_->limits.request);  // for the whole request, with any number of reads
  http::async_read_header(stream_, buffer_, *parser_,
                          [self = shared_from_this()](const Error& error, size_t) {
                            if (self->closed_) return;
                            self->awaits_request_ = false;
                            if (!error) return self->Answer();
                            const auto refusal = RefusalOf(error);
                            if (!refusal) return self->Close();
                            self->keep_alive_ = self->head_ = false;
                            self->Refuse(*refusal);
                          });
}

void HttpConnection::Answer() {
  const auto& request = parser_->get();
  head_ = request.method() == http::verb::head;
  gzip_ = AcceptsGzip(View(request[http::field::accept_encoding]));
  // The body is not read. With keep-alive it would be parsed as the next request.
  keep_alive_ = request.keep_alive() && parser_->is_done();
  if (request.version() == 11 && request.count(http::field::host) != 1) {
    keep_alive_ = false;
    return Refuse(http::status::bad_request);
  }
  if (plain_) {
    keep_alive_ = false;
    return Refuse(http::status::bad_request, "this port requires TLS: use https://");
  }
  const auto route = server_->routes.find(PathOf(View(request.target())));
  if (route == server_->routes.end()) return Refuse(http::status::not_found);
  if (!head_ && request.method() != http::verb::get) {
    return Refuse(http::status::method_not_allowed);
  }
  if (route->second.admit) {
    const bool twice = request.count(http::field::authorization) > 1;
    HttpAdmission admission = route->second.admit(
        {.path = route->first,
         .peer = peer_,
         .authorization = twice ? "" : View(request[http::field::authorization]),
         .certificate_names = certificate_names_});
    if (admission.status != 200) return RefuseAfterDelay(std::move(admission));
  }
  AnswerRoute(route->second);
}

void HttpConnection::AnswerRoute(const HttpRoute& route) {
  if (!route.may_block) return Send(RenderPage(route, gzip_));
  // Weak: a slow page must not keep closed connections alive.
  server_->renderer.Render(route,
                           [weak = weak_from_this()](std::shared_ptr<const RenderedPage> page) {
                             const auto self = weak.lock();
                             if (self != nullptr && !self->closed_) self->Send(std::move(page));
                           });
}

// While the refusal is delayed, the connection counts as idle and can be replaced.
void HttpConnection::RefuseAfterDelay(HttpAdmission admission) {
  awaits_request_ = true;
  pause_.expires_after(admission.after);
  pause_.async_wait([self = shared_from_this(), admission = std::move(admission)](const Error&) {
    if (self->closed_) return;
    self->awaits_request_ = false;
    self->Refuse(static_cast<http::status>(admission.status), admission.advice);
  });
}

void HttpConnection::Refuse(http::status status, std::string_view reason) {
  auto refusal = std::make_shared<RenderedPage>();
  refusal->page.status = static_cast<unsigned>(status);
  refusal->page.body = View(http::obsolete_reason(status));
  if (!reason.empty()) refusal->page.body.append(": ").append(reason);
  refusal->page.body += '\n';
  Send(std::move(refusal));
}

void HttpConnection::Send(std::shared_ptr<const RenderedPage> page) {
  page_ = std::move(page);
  const bool packed = gzip_ && !page_->gzip.empty();
  const std::string& body = packed ? page_->gzip : page_->page.body;
  reply_ = {};
  reply_.result(page_->page.status);
  reply_.version(parser_->get().version() == 10 ? 10 : 11);
  reply_.set(http::field::content_type, page_->page.content_type);
  reply_.set(http::field::cache_control, "no-store");
  reply_.set(http::field::vary, "Accept-Encoding");
  if (packed) reply_.set(http::field::content_encoding, "gzip");
  if (reply_.result() == http::status::method_not_allowed) {
    reply_.set(http::field::allow, "GET, HEAD");
  }
  if (reply_.result() == http::status::unauthorized) {
    reply_.set(http::field::www_authenticate, "Bearer");
  }
  reply_.keep_alive(keep_alive_);
  reply_.content_length(body.size());
  reply_.body() = {body.data(), body.size()};
  serializer_.emplace(reply_);
  stream_.tcp().expires_after(server_->limits.reply);
  const auto done = [self = shared_from_this()](const Error& error, size_t) {
    return error || self->closed_ ? self->Close() : self->Sent();
  };
  if (head_) {
    http::async_write_header(stream_, *serializer_, done);
  } else {
    http::async_write(stream_, *serializer_, done);
  }
}

void HttpConnection::Sent() {
  serializer_.reset();
  page_.reset();
  if (keep_alive_) {
    AwaitRequest();
  } else {
    stream_.tcp().expires_after(kLinger);
    if (stream_.tls() == nullptr) return CloseGracefully();
    stream_.tls()->async_shutdown([self = shared_from_this()](const Error&) {
      return self->closed_ ? self->Close() : self->CloseGracefully();
    });
  }
}

void HttpConnection::CloseGracefully() {
  Error ignored;
  stream_.tcp().socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  Linger();
}

// Waits for the peer to stop sending. Closing earlier would reset the connection, and the peer
// could lose the reply.
void HttpConnection::Linger() {
  stream_.tcp().async_read_some(asio::buffer(discarded_),
                                [self = shared_from_this()](const Error& error, size_t) {
                                  return error || self->closed_ ? self->Close() : self->Linger();
                                });
}

void HttpConnection::Close() {
  if (closed_) return;
  closed_ = true;
  pause_.cancel();
  stream_.tcp().close();
  events_->ended(this);
}

}  // namespace crout
