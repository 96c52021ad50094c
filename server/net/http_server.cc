// SPDX-License-Identifier: Apache-2.0

#include "server/net/http_server.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <exception>
#include <list>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/thread.h"
#include "server/net/http_connection.h"
#include "server/net/listen_address.h"

namespace crout {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// Pause after a failed accept, for example without a free file descriptor.
constexpr std::chrono::milliseconds kAcceptPause(100);
// Pause after an operation that ran out of memory.
constexpr std::chrono::milliseconds kMemoryPause(10);

absl::Status Bind(tcp::acceptor& acceptor, const tcp::endpoint& endpoint) {
  boost::system::error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (!error) return absl::OkStatus();
  boost::system::error_code ignored;
  acceptor.close(ignored);
  return absl::UnavailableError(error.message());
}

}  // namespace

// The private functions run on thread_, except for the first Accept().
class HttpServer::Listener {
 public:
  Listener(HttpRoutes routes, const HttpLimits& limits, HttpTlsContext tls)
      : state_{std::move(routes), limits, PageRenderer(&io_), std::move(tls)},
        events_{.answered = [this](HttpConnection* connection) { MoveToBack(connection); },
                .ended = [this](HttpConnection* connection) { Remove(connection); }} {}

  ~Listener() {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }

  void Renew(HttpTlsContext tls) {
    asio::post(io_, [this, tls = std::move(tls)]() mutable { state_.tls = std::move(tls); });
  }

  absl::StatusOr<int> Listen(const HostPort& address) {
    boost::system::error_code error;
    tcp::resolver resolver(io_);
    const auto endpoints =
        resolver.resolve(address.host, std::to_string(address.port),
                         tcp::resolver::passive | tcp::resolver::numeric_service, error);
    absl::Status status = absl::UnavailableError(
        error ? error.message() : "no such host: name an address of this machine");
    for (const auto& entry : endpoints) {
      status = Bind(acceptor_, entry.endpoint());
      if (status.ok()) break;
    }
    CROUT_RETURN_IF_ERROR(status);
    Accept();
    thread_ = StartThread([this] { Run(); });
    return acceptor_.local_endpoint(error).port();
  }

 private:
  using Connections = std::list<std::shared_ptr<HttpConnection>>;
  // Held by the pending accept operation. An expired accepting_ shows that the operation was lost.
  struct Accepting {};

  void Run() {
    while (!io_.stopped()) {
      try {
        if (accepting_.expired()) Accept();
        io_.run();
      } catch (const std::exception&) {
        EndLost();
        std::this_thread::sleep_for(kMemoryPause);
      }
    }
  }

  // Closes connections without a pending operation: the operation was lost when memory ran out, and
  // they would wait forever. This includes connections that wait for a page; their peers must
  // repeat the request.
  void EndLost() {
    for (auto next = connections_.begin(); next != connections_.end();) {
      const Connections::iterator it = next++;
      if (it->use_count() > 1) continue;
      const auto connection = *it;
      connection->Close();
    }
  }

  void Accept() {
    auto accepting = std::make_shared<const Accepting>();
    accepting_ = accepting;
    acceptor_.async_accept([this, accepting = std::move(accepting)](
                               const boost::system::error_code& error, tcp::socket socket) {
      if (error) return Pause(accepting);
      Accept();
      Add(std::move(socket));
    });
  }

  void Pause(std::shared_ptr<const Accepting> accepting) {
    pause_.expires_after(kAcceptPause);
    pause_.async_wait(
        [this, accepting = std::move(accepting)](const boost::system::error_code&) { Accept(); });
  }

  void Add(tcp::socket socket) {
    boost::system::error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    while (connections_.size() >= state_.limits.connections) Displace();
    connections_.push_back(std::make_shared<HttpConnection>(std::move(socket), &state_, &events_));
    // Keep a reference: Begin() may end the connection and remove it from the list.
    const auto connection = connections_.back();
    connection->Begin();
  }

  // Closes the first connection that awaits a request, or the first of all if none does.
  void Displace() {
    auto chosen = connections_.begin();
    while (chosen != connections_.end() && !(*chosen)->awaits_request()) ++chosen;
    if (chosen == connections_.end()) chosen = connections_.begin();
    const auto connection = *chosen;
    connection->Close();
  }

  // The list has at most limits.connections elements, so a linear search is cheaper than an index.
  Connections::iterator Find(HttpConnection* connection) {
    auto found = connections_.begin();
    while (found != connections_.end() && found->get() != connection) ++found;
    return found;
  }
  void MoveToBack(HttpConnection* connection) {
    connections_.splice(connections_.end(), connections_, Find(connection));
  }
  void Remove(HttpConnection* connection) { connections_.erase(Find(connection)); }

  asio::io_context io_{1};  // first: the members below refer to it
  // Keeps io_ running if the only operation was lost.
  const asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  HttpServerState state_;
  const HttpConnection::Events events_;
  Connections connections_;  // in the order in which they began to await a request
  std::weak_ptr<const Accepting> accepting_;
  tcp::acceptor acceptor_{io_};
  asio::steady_timer pause_{io_};
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address,
                                                              HttpRoutes routes,
                                                              const HttpLimits& limits,
                                                              const std::optional<HttpTls>& tls) {
  CROUT_ASSIGN_OR_RETURN(const HostPort host_port, ParseHostPort(address));
  HttpTlsContext context;
  if (tls) {
    CROUT_ASSIGN_OR_RETURN(context, MakeHttpTlsContext(*tls));
  }
  auto listener = std::make_unique<Listener>(std::move(routes), limits, std::move(context));
  const absl::StatusOr<int> port = listener->Listen(host_port);
  if (!port.ok()) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address, ": ", port.status().message()));
  }
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(listener), WithPort(address, *port)));
}

HttpServer::HttpServer(std::unique_ptr<Listener> listener, std::string address)
    : listener_(std::move(listener)), address_(std::move(address)) {}

absl::Status HttpServer::Renew(const HttpTls& tls) {
  CROUT_ASSIGN_OR_RETURN(HttpTlsContext context, MakeHttpTlsContext(tls));
  listener_->Renew(std::move(context));
  return absl::OkStatus();
}

HttpServer::~HttpServer() = default;

}  // namespace crout
