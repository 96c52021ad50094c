// SPDX-License-Identifier: Apache-2.0

#include "tests/support/peers/http_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace crout::testing {
namespace {

// Returns the value of Content-Length in a header, or 0 if it is absent.
size_t ContentLength(std::string_view header) {
  const std::string lower = absl::AsciiStrToLower(absl::string_view(header.data(), header.size()));
  const size_t at = lower.find("\r\ncontent-length:");
  return at == std::string::npos ? 0 : std::strtoull(lower.c_str() + at + 17, nullptr, 10);
}

}  // namespace

HttpPeer::HttpPeer(const std::string& address, std::chrono::milliseconds timeout)
    : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port)) return;
  sockaddr_in peer = {};
  peer.sin_family = AF_INET;
  peer.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, address.substr(0, colon).c_str(), &peer.sin_addr);
  const timeval wait = {timeout.count() / 1000, (timeout.count() % 1000) * 1000};
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
  connected_ = connect(fd_, reinterpret_cast<const sockaddr*>(&peer), sizeof peer) == 0;
}

// Resets the connection. An orderly close would leave the port in TIME_WAIT, and tests open
// thousands of connections.
HttpPeer::~HttpPeer() {
  const linger reset = {1, 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  close(fd_);
}

bool HttpPeer::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

void HttpPeer::HalfClose() { shutdown(fd_, SHUT_WR); }

bool HttpPeer::ReadMore() {
  char buffer[65536];
  const ssize_t got = recv(fd_, buffer, sizeof buffer, 0);
  if (got <= 0) {
    ended_ = got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
    return false;
  }
  received_.append(buffer, static_cast<size_t>(got));
  return true;
}

std::string HttpPeer::ReadReply(bool head) {
  for (;;) {
    const size_t header = received_.find("\r\n\r\n");
    if (header != std::string::npos) {
      const size_t end =
          header + 4 + (head ? 0 : ContentLength(std::string_view(received_).substr(0, header)));
      if (received_.size() >= end) {
        std::string reply = received_.substr(0, end);
        received_.erase(0, end);
        return reply;
      }
    }
    if (!ReadMore()) return std::exchange(received_, {});
  }
}

std::string HttpPeer::ReadToEnd() {
  while (ReadMore()) {
  }
  return std::exchange(received_, {});
}

std::string HttpRequest(const std::string& address, const std::string& method,
                        const std::string& path) {
  HttpPeer peer(address);
  peer.Send(method + " " + path + " HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
  return peer.ReadToEnd();
}

}  // namespace crout::testing
