// SPDX-License-Identifier: Apache-2.0

#include "server/net/http_post.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"

namespace crout {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Error = beast::error_code;

// Limits of a reply.
constexpr uint32_t kHeaderBytes = 8192;
constexpr uint64_t kBodyBytes = 65536;

std::string HostOf(const HostPort& address) {
  const bool is_ipv6 = address.host.find(':') != std::string::npos;
  return is_ipv6 ? absl::StrCat("[", address.host, "]:", address.port)
                 : absl::StrCat(address.host, ":", address.port);
}

// One request and its reply. Pending handlers keep it alive, because they can outlive Post().
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(asio::io_context& context, const HttpUrl& url, const std::string& content_type,
           std::string body)
      : resolver_(context), stream_(context), request_(http::verb::post, url.path, 11) {
    request_.set(http::field::host, HostOf(url.address));
    request_.set(http::field::content_type, content_type);
    request_.set(http::field::user_agent, "croutd");
    request_.set(http::field::connection, "close");
    request_.body() = std::move(body);
    request_.prepare_payload();
    reply_.header_limit(kHeaderBytes);
    reply_.body_limit(kBodyBytes);
  }

  void Begin(const HostPort& address, std::chrono::milliseconds limit) {
    stream_.expires_after(limit);
    resolver_.async_resolve(address.host, std::to_string(address.port),
                            [self = shared_from_this()](const Error& error, const auto& found) {
                              if (error) return self->Fail("resolve", error);
                              self->Connect(found);
                            });
  }

  // Cancelled handlers run, and release this object, when the context runs next.
  void Cancel() {
    resolver_.cancel();
    stream_.close();
  }

  const absl::Status& status() const { return status_; }

 private:
  void Connect(const asio::ip::tcp::resolver::results_type& addresses) {
    stream_.async_connect(addresses,
                          [self = shared_from_this()](const Error& error, const auto& /*which*/) {
                            if (error) return self->Fail("connect", error);
                            self->Write();
                          });
  }
  void Write() {
    http::async_write(stream_, request_,
                      [self = shared_from_this()](const Error& error, size_t /*bytes*/) {
                        if (error) return self->Fail("send", error);
                        self->Read();
                      });
  }
  void Read() {
    http::async_read(stream_, buffer_, reply_,
                     [self = shared_from_this()](const Error& error, size_t /*bytes*/) {
                       if (error) return self->Fail("receive", error);
                       self->Answered();
                     });
  }
  void Answered() {
    const unsigned code = reply_.get().result_int();
    status_ =
        http::to_status_class(code) == http::status_class::successful
            ? absl::OkStatus()
            : absl::UnavailableError(absl::StrCat("the receiver returned HTTP status ", code));
  }
  void Fail(const char* step, const Error& error) {
    status_ = absl::UnavailableError(absl::StrCat(step, ": ", error.message()));
  }

  asio::ip::tcp::resolver resolver_;
  beast::tcp_stream stream_;
  http::request<http::string_body> request_;
  http::response_parser<http::string_body> reply_;
  beast::flat_buffer buffer_{kHeaderBytes + kBodyBytes};
  absl::Status status_ = absl::UnavailableError("the receiver did not reply in time");
};

}  // namespace

struct HttpPoster::Context {
  asio::io_context io{1};
};

absl::StatusOr<HttpUrl> ParseHttpUrl(std::string_view url) {
  constexpr std::string_view kScheme = "http://";
  const auto invalid = [&](std::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("'", ToAbsl(url), "': ", ToAbsl(what)));
  };
  if (!url.starts_with(kScheme))
    return invalid("expected http://host:port or http://host:port/path");
  std::string_view rest = url.substr(kScheme.size());
  const size_t slash = rest.find('/');
  HttpUrl parsed;
  if (slash != std::string_view::npos) parsed.path = rest.substr(slash);
  CROUT_ASSIGN_OR_RETURN(parsed.address, ParseHostPort(rest.substr(0, slash)));
  if (parsed.address.port == 0) return invalid("the port must be from 1 to 65535");
  for (const char c : parsed.path) {
    if (c <= ' ' || c >= 0x7f || c == '#')
      return invalid("the path must be printable ASCII without spaces and #");
  }
  return parsed;
}

HttpPoster::HttpPoster(HttpUrl url) : url_(std::move(url)), context_(std::make_unique<Context>()) {}
HttpPoster::~HttpPoster() = default;

absl::Status HttpPoster::Post(const std::string& content_type, std::string body,
                              std::chrono::milliseconds limit) {
  asio::io_context& io = context_->io;
  io.restart();
  // Stop() sets stopped_ before it stops the context. After restart(), this thread therefore sees
  // either the flag or a stopped context.
  if (stopped_) return absl::CancelledError("stopped");
  const auto exchange = std::make_shared<Exchange>(io, url_, content_type, std::move(body));
  exchange->Begin(url_.address, limit);
  // run_for() also limits the name lookup, to which the limit of `exchange` does not apply.
  io.run_for(limit);
  const absl::Status status = exchange->status();
  exchange->Cancel();
  if (stopped_) return absl::CancelledError("stopped");
  return status;
}

void HttpPoster::Stop() {
  stopped_ = true;
  context_->io.stop();
}

}  // namespace crout
