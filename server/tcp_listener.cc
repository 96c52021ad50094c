#include "server/tcp_listener.h"

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
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/util/allocation.h"
#include "kernels/util/status_macros.h"
#include "server/http/listen_address.h"

namespace crout {
namespace {

constexpr int kBacklog = 4096;
// What a peer may leave unacknowledged: as gRPC's own listener sets it, by our keepalive.
constexpr unsigned kUserTimeoutMs = 20'000;
// Before the next attempt where the system has no descriptor or no memory for a connection.
constexpr std::chrono::milliseconds kPause(50);

absl::Status SystemError(const char* call) {
  return absl::UnavailableError(absl::StrCat(call, ": ", std::strerror(errno)));
}

void Set(int socket, int level, int option, unsigned value) {
  setsockopt(socket, level, option, &value, sizeof value);
}

// One that the system has for the socket alone, as long as it runs.
std::optional<uint64_t> CookieOf(int fd) {
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  if (getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) != 0) return std::nullopt;
  return cookie;
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

absl::StatusOr<int> Listen(const addrinfo& address, int port) {
  sockaddr_storage where = {};
  std::memcpy(&where, address.ai_addr, address.ai_addrlen);
  // Both families have the port at the same place; those after the first get what it picked.
  reinterpret_cast<sockaddr_in*>(&where)->sin_port = htons(static_cast<uint16_t>(port));
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return SystemError("socket");
  Set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.ai_family == AF_INET6) Set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  // Connections have these from their listener.
  Set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  Set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMs);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&where), address.ai_addrlen) == 0 &&
      listen(fd, kBacklog) == 0) {
    return fd;
  }
  absl::Status status = SystemError("bind");
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

absl::StatusOr<std::unique_ptr<TcpListener>> TcpListener::Bind(const std::string& address,
                                                               size_t most) {
  CROUT_ASSIGN_OR_RETURN(const HostPort wanted, ParseHostPort(address));
  std::unique_ptr<TcpListener> listener(new TcpListener(most));
  listener->stop_ = eventfd(0, EFD_CLOEXEC);
  if (listener->stop_ < 0) return SystemError("eventfd");
  const bool any = wanted.host == "0.0.0.0" || wanted.host == "::";
  absl::Status status = absl::UnavailableError("it stands for no address");
  listener->port_ = wanted.port;
  for (const std::string& host :
       any ? std::vector<std::string>{"::", "0.0.0.0"} : std::vector<std::string>{wanted.host}) {
    CROUT_ASSIGN_OR_RETURN(const Addresses addresses, Resolve(host, wanted.port));
    for (const addrinfo* next = addresses.get(); next != nullptr; next = next->ai_next) {
      const absl::StatusOr<int> fd = Listen(*next, listener->port_);
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

TcpListener::~TcpListener() {
  Stop();
  for (const int socket : sockets_) close(socket);
  if (stop_ >= 0) close(stop_);
}

void TcpListener::Start(std::unique_ptr<Acceptor> acceptor) {
  acceptor_ = std::move(acceptor);
  thread_ = std::thread([this] { Run(); });
}

void TcpListener::Stop() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  (void)!write(stop_, &one, sizeof one);
  thread_.join();
}

void TcpListener::Run() {
  std::vector<pollfd> polled;
  for (const int socket : sockets_)
    polled.push_back({.fd = socket, .events = POLLIN, .revents = 0});
  polled.push_back({.fd = stop_, .events = POLLIN, .revents = 0});
  for (;;) {
    if (poll(polled.data(), polled.size(), -1) < 0) continue;
    if (polled.back().revents != 0) return;
    for (size_t i = 0; i < sockets_.size(); ++i) {
      if (polled[i].revents != 0) GoOnWithoutMemory([&] { AcceptFrom(sockets_[i]); });
    }
  }
}

void TcpListener::AcceptFrom(int socket) {
  const int fd = accept4(socket, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    // What is over by itself, as a peer that has left, needs no pause.
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      std::this_thread::sleep_for(kPause);
    }
    return;
  }
  {
    MutexLock lock(&mutex_);
    if (connections_.size() >= most_) Sweep();
    if (connections_.size() >= most_) {
      ++turned_away_;
      close(fd);
      return;
    }
    connections_.push_back({.fd = fd, .cookie = CookieOf(fd).value_or(0)});
  }
  Acceptor::NewConnectionParameters connection;
  connection.listener_fd = socket;
  connection.fd = fd;
  acceptor_->HandleNewConnection(&connection);
}

void TcpListener::Sweep() {
  const auto closed = [](const Connection& connection) {
    return CookieOf(connection.fd) != connection.cookie;
  };
  connections_.erase(std::remove_if(connections_.begin(), connections_.end(), closed),
                     connections_.end());
}

size_t TcpListener::open() {
  MutexLock lock(&mutex_);
  Sweep();
  return connections_.size();
}

}  // namespace crout
