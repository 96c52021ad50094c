// SPDX-License-Identifier: Apache-2.0

#include "tests/support/peers/scripted_http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

namespace crout::testing {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

// Returns the value of Content-Length in a header.
size_t LengthIn(const std::string& header) {
  constexpr char kName[] = "\r\nContent-Length: ";
  const size_t at = header.find(kName);
  return at == std::string::npos ? 0 : std::stoul(header.substr(at + sizeof(kName) - 1));
}

// Returns a request, or what arrived before the connection ended.
std::string ReadRequest(int fd) {
  std::string request;
  size_t needed = std::string::npos;
  std::vector<char> bytes(1 << 16);
  while (request.size() < needed) {
    const ssize_t count = recv(fd, bytes.data(), bytes.size(), 0);
    if (count <= 0) break;
    request.append(bytes.data(), static_cast<size_t>(count));
    const size_t end = request.find("\r\n\r\n");
    if (needed == std::string::npos && end != std::string::npos)
      needed = end + 4 + LengthIn(request.substr(0, end));
  }
  return request;
}

// The client may close the connection first.
void SendAll(int fd, const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = send(fd, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (count <= 0) return;
    done += static_cast<size_t>(count);
  }
}

}  // namespace

ScriptedHttpServer::ScriptedHttpServer() : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  Require(listener_ >= 0 && bind(listener_, generic, size) == 0 && listen(listener_, 16) == 0 &&
          getsockname(listener_, generic, &size) == 0);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { Serve(); });
}

ScriptedHttpServer::~ScriptedHttpServer() {
  {
    const MutexLock lock(&mutex_);
    ending_ = true;
    if (current_ >= 0) shutdown(current_, SHUT_RDWR);
    shutdown(listener_, SHUT_RDWR);
  }
  thread_.join();
  close(listener_);
}

void ScriptedHttpServer::Add(std::string reply, bool complete) {
  const MutexLock lock(&mutex_);
  replies_.push_back({std::move(reply), complete});
}

std::vector<std::string> ScriptedHttpServer::AwaitRequests(size_t count) {
  const MutexLock lock(&mutex_);
  while (requests_.size() < count) changed_.Wait(&mutex_);
  return requests_;
}

void ScriptedHttpServer::Serve() {
  std::vector<int> silent;
  while (true) {
    const int fd = accept(listener_, nullptr, nullptr);
    if (fd < 0) break;
    {
      const MutexLock lock(&mutex_);
      current_ = fd;
      if (ending_) shutdown(fd, SHUT_RDWR);
    }
    std::string request = ReadRequest(fd);
    Reply reply{"", false};
    {
      const MutexLock lock(&mutex_);
      current_ = -1;
      if (!replies_.empty()) {
        reply = std::move(replies_.front());
        replies_.pop_front();
      }
      requests_.push_back(std::move(request));
      changed_.SignalAll();
    }
    SendAll(fd, reply.bytes);
    if (reply.complete) {
      close(fd);
    } else {
      silent.push_back(fd);
    }
  }
  for (const int fd : silent) close(fd);
}

}  // namespace crout::testing
