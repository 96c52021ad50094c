// SPDX-License-Identifier: Apache-2.0

#include "server/net/connection_listener.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/util/allocation.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/thread.h"
#include "server/net/listen_address.h"
#include "server/net/unix_socket.h"

namespace crout {
namespace {

constexpr int kBacklog = 4096;
// Time for which sent data may stay unacknowledged. Equal to kKeepaliveTimeoutMs of
// server/daemon.cc, which gRPC's own listener would use.
constexpr unsigned kUserTimeoutMs = 20'000;
// Connections that one peer may always have, even if they exceed a quarter of the limit.
constexpr size_t kMinPerPeer = 64;

absl::Status SystemError(const char* call) {
  return absl::UnavailableError(absl::StrCat(call, ": ", std::strerror(errno)));
}

void Set(int socket, int level, int option, unsigned value) {
  setsockopt(socket, level, option, &value, sizeof value);
}

// Returns the system's unique identifier of the socket, which is never reused while the system
// runs.
std::optional<uint64_t> CookieOf(int fd) {
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  if (getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) != 0) return std::nullopt;
  return cookie;
}

// Returns true for errors that concern one connection only, such as a peer that left before
// accept(). accept() also reports pending network errors of the new connection.
bool IsConnectionError(int error) {
  switch (error) {
    case EAGAIN:
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
      return true;
    default:
      return false;
  }
}

// Returns the peer as an IPv6 address (IPv4-mapped for IPv4), without the 64 bits of an IPv6
// address that its owner can choose freely.
std::array<uint8_t, 16> PeerOf(const sockaddr_storage& from) {
  std::array<uint8_t, 16> peer = {};
  if (from.ss_family == AF_UNIX) return peer;
  if (from.ss_family == AF_INET) {
    peer[10] = peer[11] = 0xff;
    std::memcpy(&peer[12], &reinterpret_cast<const sockaddr_in&>(from).sin_addr, 4);
  } else {
    const in6_addr& address = reinterpret_cast<const sockaddr_in6&>(from).sin6_addr;
    std::memcpy(peer.data(), &address, IN6_IS_ADDR_V4MAPPED(&address) ? 16 : 8);
  }
  return peer;
}

TcpPeer TcpPeerFrom(const sockaddr_storage& from) {
  TcpPeer peer;
  if (from.ss_family == AF_INET) {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(from);
    peer = {PeerOf(from), ntohs(ipv4.sin_port)};
  } else if (from.ss_family == AF_INET6) {
    const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(from);
    std::memcpy(peer.address.data(), &ipv6.sin6_addr, peer.address.size());
    peer.port = ntohs(ipv6.sin6_port);
  }
  return peer;
}

struct FreeAddresses {
  void operator()(addrinfo* addresses) const { freeaddrinfo(addresses); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

absl::StatusOr<Addresses> Resolve(const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) return absl::UnavailableError(gai_strerror(error));
  return Addresses(found);
}

// Returns a socket that listens on `address` and `port`. ALREADY_EXISTS if another process uses the
// port; UNAVAILABLE for any other error.
absl::StatusOr<int> Listen(const addrinfo& address, int port) {
  sockaddr_storage where = {};
  std::memcpy(&where, address.ai_addr, address.ai_addrlen);
  // The port field has the same offset in both families. After the first socket, `port` is the port
  // that the first socket bound.
  reinterpret_cast<sockaddr_in*>(&where)->sin_port = htons(static_cast<uint16_t>(port));
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return SystemError("socket");
  Set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.ai_family == AF_INET6) Set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  // Accepted connections inherit these options.
  Set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  Set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMs);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&where), address.ai_addrlen) == 0 &&
      listen(fd, kBacklog) == 0) {
    return fd;
  }
  absl::Status status = errno == EADDRINUSE
                            ? absl::AlreadyExistsError(SystemError("bind").message())
                            : SystemError("bind");
  close(fd);
  return status;
}

int PortOf(int fd) {
  sockaddr_storage bound = {};
  socklen_t size = sizeof bound;
  getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size);
  return ntohs(reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
}

}  // namespace

size_t RaiseDescriptorLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  const rlimit raised = {.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  return static_cast<size_t>(limit.rlim_cur);
}

absl::StatusOr<std::unique_ptr<ConnectionListener>> ConnectionListener::Bind(
    const std::string& address, size_t max_connections) {
  CROUT_ASSIGN_OR_RETURN(const HostPort requested, ParseHostPort(address));
  std::unique_ptr<ConnectionListener> listener(
      new ConnectionListener(max_connections, MaxPerPeer(max_connections)));
  listener->stop_ = eventfd(0, EFD_CLOEXEC);
  if (listener->stop_ < 0) return SystemError("eventfd");
  const bool any = requested.host == "0.0.0.0" || requested.host == "::";
  absl::Status status = absl::UnavailableError("the name does not resolve to an address");
  listener->port_ = requested.port;
  std::set<std::string> seen;  // A host can be listed twice with the same address.
  for (const std::string& host :
       any ? std::vector<std::string>{"::", "0.0.0.0"} : std::vector<std::string>{requested.host}) {
    CROUT_ASSIGN_OR_RETURN(const Addresses addresses, Resolve(host, requested.port));
    for (const addrinfo* next = addresses.get(); next != nullptr; next = next->ai_next) {
      std::string raw(reinterpret_cast<const char*>(next->ai_addr), next->ai_addrlen);
      if (!seen.insert(std::move(raw)).second) continue;
      const absl::StatusOr<int> fd = Listen(*next, listener->port_);
      // Fail: clients that use the other family of the host would reach a different server.
      if (absl::IsAlreadyExists(fd.status())) return absl::UnavailableError(fd.status().message());
      if (!fd.ok()) {
        status = fd.status();
        continue;
      }
      listener->sockets_.push_back(*fd);
      listener->port_ = PortOf(*fd);
    }
    if (!listener->sockets_.empty()) return listener;
  }
  return status;
}

absl::StatusOr<std::unique_ptr<ConnectionListener>> ConnectionListener::BindUnix(
    const std::string& path, size_t max_connections) {
  std::unique_ptr<ConnectionListener> listener(
      new ConnectionListener(max_connections, max_connections));
  listener->stop_ = eventfd(0, EFD_CLOEXEC);
  if (listener->stop_ < 0) return SystemError("eventfd");
  listener->sockets_.reserve(1);
  CROUT_ASSIGN_OR_RETURN(const int fd, ListenUnix(path, SOCK_STREAM));
  listener->sockets_.push_back(fd);
  listener->path_ = path;
  return listener;
}

ConnectionListener::~ConnectionListener() {
  Stop();
  CloseSockets();
  if (stop_ >= 0) close(stop_);
}

void ConnectionListener::Start(std::vector<std::unique_ptr<Acceptor>> acceptors) {
  acceptors_ = std::move(acceptors);
  thread_ = StartThread([this] { Run(); });
}

void ConnectionListener::Stop() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  (void)!write(stop_, &one, sizeof one);
  thread_.join();
  CloseSockets();
}

void ConnectionListener::CloseSockets() {
  if (!path_.empty() && !sockets_.empty()) unlink(path_.c_str());
  for (const int socket : sockets_) close(socket);
  sockets_.clear();
}

void ConnectionListener::Run() {
  std::vector<pollfd> polled;
  for (const int socket : sockets_)
    polled.push_back({.fd = socket, .events = POLLIN, .revents = 0});
  polled.push_back({.fd = stop_, .events = POLLIN, .revents = 0});
  for (;;) {
    if (poll(polled.data(), polled.size(), -1) < 0) {
      if (errno != EINTR) PauseAccepting(stop_);
      continue;
    }
    if (polled.back().revents != 0) return;
    for (size_t i = 0; i < sockets_.size(); ++i) {
      if (polled[i].revents != 0) AbandonOnBadAlloc([&] { AcceptFrom(sockets_[i]); });
    }
  }
}

void ConnectionListener::AcceptFrom(int socket) {
  sockaddr_storage from = {};
  socklen_t size = sizeof from;
  const int fd =
      accept4(socket, reinterpret_cast<sockaddr*>(&from), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    if (!IsConnectionError(errno)) PauseAccepting(stop_);
    return;
  }
  absl::Cleanup close_on_return = [fd] { close(fd); };
  Connection accepted = {.fd = fd,
                         .cookie = CookieOf(fd).value_or(0),
                         .peer = PeerOf(from),
                         .from = TcpPeerFrom(from),
                         .user = UserAt(fd)};
  if (!Admit(accepted)) {
    ++refused_;
    return;
  }
  std::move(close_on_return).Cancel();
  Acceptor::NewConnectionParameters connection;
  connection.listener_fd = socket;
  connection.fd = fd;
  acceptors_[accepted.acceptor]->HandleNewConnection(&connection);
}

bool ConnectionListener::Admit(Connection& connection) {
  MutexLock lock(&mutex_);
  if (!HasCapacityFor(connection.peer)) Sweep();
  if (!HasCapacityFor(connection.peer)) return false;
  if (acceptors_.size() > 1) {
    connection.acceptor = AcceptorFor(connection.user);
    if (connection.acceptor == 0) {
      Sweep();
      connection.acceptor = AcceptorFor(connection.user);
    }
  }
  connections_.push_back(connection);
  return true;
}

size_t ConnectionListener::AcceptorFor(uid_t user) const {
  std::vector<bool> in_use(acceptors_.size());
  for (const Connection& connection : connections_) {
    if (connection.acceptor != 0 && connection.user == user) return connection.acceptor;
    in_use[connection.acceptor] = true;
  }
  for (size_t acceptor = 1; acceptor < in_use.size(); ++acceptor) {
    if (!in_use[acceptor]) return acceptor;
  }
  return 0;
}

std::string ConnectionListener::UserOf(size_t acceptor) {
  MutexLock lock(&mutex_);
  for (const Connection& connection : connections_) {
    if (acceptor != 0 && connection.acceptor == acceptor) return std::to_string(connection.user);
  }
  return "";
}

bool ConnectionListener::HasCapacityFor(const Peer& peer) const {
  if (connections_.size() >= max_connections_) return false;
  const auto of_peer = [&](const Connection& connection) { return connection.peer == peer; };
  const auto count = std::count_if(connections_.begin(), connections_.end(), of_peer);
  return static_cast<size_t>(count) < max_per_peer_;
}

bool ConnectionListener::Disconnect(const TcpPeer& peer) {
  constexpr size_t kStep = size_t{1} << 20;
  constexpr int kMaxSteps = 64;  // more than a socket's buffer holds
  MutexLock lock(&mutex_);
  for (const Connection& connection : connections_) {
    if (connection.from != peer || CookieOf(connection.fd) != connection.cookie) continue;
    shutdown(connection.fd, SHUT_RDWR);
    // Discard received data, which gRPC would otherwise still read and answer.
    for (int i = 0; i < kMaxSteps; ++i) {
      if (recv(connection.fd, nullptr, kStep, MSG_TRUNC | MSG_DONTWAIT) <= 0) break;
    }
    return true;
  }
  return false;
}

size_t ConnectionListener::MaxPerPeer(size_t max_connections) {
  return std::max(max_connections / 4, std::min(max_connections, kMinPerPeer));
}

void ConnectionListener::Sweep() {
  const auto closed = [](const Connection& connection) {
    return CookieOf(connection.fd) != connection.cookie;
  };
  connections_.erase(std::remove_if(connections_.begin(), connections_.end(), closed),
                     connections_.end());
}

size_t ConnectionListener::open() {
  MutexLock lock(&mutex_);
  Sweep();
  return connections_.size();
}

}  // namespace crout
