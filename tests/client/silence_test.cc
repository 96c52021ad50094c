// SPDX-License-Identifier: Apache-2.0

// Tests the client with a server that accepts connections but never answers, not even pings.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "crout/client.h"
#include "crout/matrix_source.h"
#include "crout/status.h"

namespace crout::client_test::silence_test {
namespace {

// An empty HTTP/2 SETTINGS frame, without which no connection becomes ready.
constexpr absl::string_view kSettings("\0\0\0\x04\0\0\0\0\0", 9);

// Listens on a port chosen by the system. Sends a greeting on each connection.
class SilentPeer {
 public:
  explicit SilentPeer(absl::string_view greeting) : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_, 16), 0);
    socklen_t size = sizeof address;
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
    thread_ = std::thread([this, greeting] { Accept(greeting); });
  }
  ~SilentPeer() {
    shutdown(listener_, SHUT_RDWR);  // ends accept()
    thread_.join();
    for (const int fd : connections_) close(fd);
    close(listener_);
  }
  SilentPeer(const SilentPeer&) = delete;  // It owns sockets.
  SilentPeer& operator=(const SilentPeer&) = delete;

  const std::string& address() const { return address_; }

 private:
  void Accept(absl::string_view greeting) {
    for (int fd; (fd = accept(listener_, nullptr, nullptr)) >= 0;) {
      connections_.push_back(fd);
      // The client may have closed the connection already.
      if (send(fd, greeting.data(), greeting.size(), MSG_NOSIGNAL) < 0) {
        EXPECT_TRUE(errno == EPIPE || errno == ECONNRESET) << errno;
      }
    }
  }

  const int listener_;
  std::string address_;
  std::vector<int> connections_;  // used only by the thread until it is joined
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<Client>> Connect(const SilentPeer& peer) {
  return Client::Connect({.server = peer.address(),
                          .timeout = absl::InfiniteDuration(),
                          .silence = absl::Milliseconds(600),
                          .retry = {.max_attempts = 1}});
}

// The calls have no timeout and would otherwise wait forever.
TEST(SilenceTest, CallsEndWhereNoPingIsAnswered) {
  const SilentPeer peer(kSettings);
  const auto client = Connect(peer);
  ASSERT_TRUE(client.ok()) << client.status();
  const absl::Status unary = (*client)->Describe("h").status();
  EXPECT_TRUE(IsUnreachable(unary)) << unary;
  const absl::Status upload = (*client)->Factor(MatrixSource::Ones(64, 64), {}, {}).status();
  EXPECT_TRUE(IsUnreachable(upload)) << upload;
}

TEST(SilenceTest, CallsEndWhereNoConnectionIsMade) {
  const SilentPeer peer("");
  const auto client = Connect(peer);
  ASSERT_TRUE(client.ok()) << client.status();
  const absl::Status status = (*client)->Describe("h").status();
  EXPECT_TRUE(IsUnreachable(status)) << status;
}

TEST(SilenceTest, IsAtLeastAMillisecond) {
  EXPECT_EQ(Client::Connect({.silence = absl::ZeroDuration()}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace crout::client_test::silence_test
