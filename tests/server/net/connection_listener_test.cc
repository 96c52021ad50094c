// SPDX-License-Identifier: Apache-2.0

// Tests which connections are accepted, rejected and closed.
#include "server/net/connection_listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/util/mutex.h"
#include "tests/support/status_matchers.h"

namespace crout::connection_listener_test {
namespace {

// Takes the accepted connections in place of gRPC.
class AcceptedSockets {
 public:
  ~AcceptedSockets() {
    MutexLock lock(&mutex_);
    for (const int fd : fds_) close(fd);
  }
  void Add(int fd) {
    MutexLock lock(&mutex_);
    fds_.push_back(fd);
    changed_.SignalAll();
  }
  // Blocks until at least `count` connections are open.
  void WaitFor(size_t count) {
    MutexLock lock(&mutex_);
    while (fds_.size() < count) changed_.Wait(&mutex_);
  }
  int Last() {
    MutexLock lock(&mutex_);
    return fds_.back();
  }
  void CloseOne() {
    MutexLock lock(&mutex_);
    close(fds_.front());
    fds_.erase(fds_.begin());
  }
  size_t count() {
    MutexLock lock(&mutex_);
    return fds_.size();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<int> fds_ ABSL_GUARDED_BY(mutex_);
};

class Acceptor : public ConnectionListener::Acceptor {
 public:
  explicit Acceptor(AcceptedSockets* accepted) : accepted_(accepted) {}
  void HandleNewConnection(NewConnectionParameters* connection) override {
    accepted_->Add(connection->fd);
  }

 private:
  AcceptedSockets* const accepted_;
};

std::vector<std::unique_ptr<ConnectionListener::Acceptor>> Acceptors(AcceptedSockets* accepted,
                                                                     size_t count = 1) {
  std::vector<std::unique_ptr<ConnectionListener::Acceptor>> acceptors;
  for (size_t i = 0; i < count; ++i) acceptors.push_back(std::make_unique<Acceptor>(accepted));
  return acceptors;
}

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&&) = delete;

  // Blocks until the listener's side has closed the connection.
  void WaitUntilClosed() const {
    char byte;
    EXPECT_LE(recv(fd_, &byte, 1, 0), 0);
  }
  bool open() const { return fd_ >= 0; }
  void Send(size_t bytes) const {
    EXPECT_EQ(send(fd_, std::string(bytes, 'x').data(), bytes, 0), static_cast<ssize_t>(bytes));
  }
  // Returns the address of this end.
  TcpPeer peer() const {
    sockaddr_in address = {};
    socklen_t size = sizeof address;
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    return *ParseTcpPeer(absl::StrCat("ipv4:127.0.0.1:", ntohs(address.sin_port)));
  }

 private:
  int fd_;
};

sockaddr_in Loopback(const char* host, int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, host, &address.sin_addr);
  return address;
}

// Connects from the loopback address `host`. If nothing listens on the port, the socket is not
// open.
Socket ConnectFrom(const char* host, int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in from = Loopback(host, 0);
  EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&from), sizeof from), 0);
  const sockaddr_in to = Loopback("127.0.0.1", port);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return Socket(fd);
  EXPECT_EQ(errno, ECONNREFUSED);
  close(fd);
  return Socket(-1);
}

class ConnectionListenerTest : public ::testing::Test {
 protected:
  void Start(size_t most) {
    auto listener = ConnectionListener::Bind("127.0.0.1:0", most);
    ASSERT_OK(listener);
    listener_ = *std::move(listener);
    listener_->Start(Acceptors(&accepted_));
  }
  std::vector<Socket> ConnectMany(const char* host, int count) {
    std::vector<Socket> sockets;
    for (int i = 0; i < count; ++i) sockets.push_back(ConnectFrom(host, listener_->port()));
    return sockets;
  }

  AcceptedSockets accepted_;
  std::unique_ptr<ConnectionListener> listener_;
};

TEST(ConnectionListenerShareTest, OnePeerMayUseAQuarterOfALargeLimit) {
  EXPECT_EQ(ConnectionListener::MaxPerPeer(4096), 1024u);
  EXPECT_EQ(ConnectionListener::MaxPerPeer(100), 64u);
  EXPECT_EQ(ConnectionListener::MaxPerPeer(8), 8u);
}

TEST_F(ConnectionListenerTest, OnePeerCannotExhaustTheLimit) {
  Start(256);
  const std::vector<Socket> many = ConnectMany("127.0.0.1", 64);
  accepted_.WaitFor(64);
  ConnectFrom("127.0.0.1", listener_->port()).WaitUntilClosed();
  EXPECT_EQ(listener_->refused(), 1u);
  const std::vector<Socket> others = ConnectMany("127.0.0.2", 1);
  accepted_.WaitFor(65);
  EXPECT_EQ(listener_->open(), 65u);
  EXPECT_EQ(listener_->refused(), 1u);
}

TEST_F(ConnectionListenerTest, APeerMayReconnectAfterItsConnectionEnds) {
  Start(256);
  const std::vector<Socket> many = ConnectMany("127.0.0.1", 64);
  accepted_.WaitFor(64);
  accepted_.CloseOne();
  const std::vector<Socket> next = ConnectMany("127.0.0.1", 1);
  accepted_.WaitFor(64);
  EXPECT_EQ(listener_->open(), 64u);
  EXPECT_EQ(listener_->refused(), 0u);
}

TEST_F(ConnectionListenerTest, ConnectionsOfAllPeersAreLimited) {
  Start(256);
  std::vector<std::vector<Socket>> peers;
  for (int i = 1; i <= 4; ++i)
    peers.push_back(ConnectMany(absl::StrCat("127.0.0.", i).c_str(), 64));
  accepted_.WaitFor(256);
  ConnectFrom("127.0.0.9", listener_->port()).WaitUntilClosed();
  EXPECT_EQ(accepted_.count(), 256u);
}

TEST_F(ConnectionListenerTest, DisconnectDropsUnreadData) {
  Start(256);
  const std::vector<Socket> other = ConnectMany("127.0.0.1", 1);
  const std::vector<Socket> peer = ConnectMany("127.0.0.1", 1);
  accepted_.WaitFor(2);
  peer[0].Send(10'000);
  EXPECT_TRUE(listener_->Disconnect(peer[0].peer()));
  peer[0].WaitUntilClosed();
  char byte = 0;
  EXPECT_EQ(recv(accepted_.Last(), &byte, 1, MSG_DONTWAIT), 0) << "the end, and nothing before";
  other[0].Send(1);
  EXPECT_FALSE(listener_->Disconnect(TcpPeer()));
}

TEST_F(ConnectionListenerTest, AConnectionThatEndedIsNotDisconnected) {
  Start(256);
  const std::vector<Socket> peer = ConnectMany("127.0.0.1", 1);
  accepted_.WaitFor(1);
  accepted_.CloseOne();
  EXPECT_FALSE(listener_->Disconnect(peer[0].peer()));
}

TEST_F(ConnectionListenerTest, AfterStopTheSystemRefuses) {
  Start(256);
  listener_->Stop();
  EXPECT_FALSE(ConnectFrom("127.0.0.1", listener_->port()).open());
}

TEST_F(ConnectionListenerTest, APortInUseInOneAddressFamilyIsAnError) {
  Start(256);
  EXPECT_FALSE(ConnectionListener::Bind(absl::StrCat("localhost:", listener_->port()), 256).ok());
  EXPECT_OK(ConnectionListener::Bind("localhost:0", 256));
}

Socket ConnectTo(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un to = {};
  to.sun_family = AF_UNIX;
  path.copy(to.sun_path, sizeof to.sun_path - 1);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return Socket(fd);
  close(fd);
  return Socket(-1);
}

class UnixListenerTest : public ::testing::Test {
 protected:
  const std::string path_ =
      absl::StrCat(::testing::TempDir(), "crout-", getpid(), "-listener.socket");
  AcceptedSockets accepted_;
};

TEST_F(UnixListenerTest, OneUserMayTakeTheWholeLimit) {
  auto listener = ConnectionListener::BindUnix(path_, 100);
  ASSERT_OK(listener);
  (*listener)->Start(Acceptors(&accepted_));
  std::vector<Socket> many;
  for (int i = 0; i < 100; ++i) many.push_back(ConnectTo(path_));
  accepted_.WaitFor(100);
  ConnectTo(path_).WaitUntilClosed();
  EXPECT_EQ((*listener)->open(), 100u);
  EXPECT_EQ((*listener)->refused(), 1u);
  (*listener)->Stop();
  EXPECT_NE(access(path_.c_str(), F_OK), 0) << "it is removed";
}

TEST_F(UnixListenerTest, AUserHasAnAcceptorWhileConnected) {
  auto listener = ConnectionListener::BindUnix(path_, 100);
  ASSERT_OK(listener);
  AcceptedSockets first;
  std::vector<std::unique_ptr<ConnectionListener::Acceptor>> acceptors = Acceptors(&first);
  for (auto& acceptor : Acceptors(&accepted_, 2)) acceptors.push_back(std::move(acceptor));
  (*listener)->Start(std::move(acceptors));
  const std::string user = std::to_string(getuid());
  const Socket connections[] = {ConnectTo(path_), ConnectTo(path_)};
  accepted_.WaitFor(2);
  EXPECT_EQ(first.count(), 0u);
  EXPECT_EQ((*listener)->UserOf(0), "");
  EXPECT_EQ((*listener)->UserOf(1), user);
  EXPECT_EQ((*listener)->UserOf(2), "");
}

TEST_F(UnixListenerTest, ASocketThatWasLeftBehindIsReplacedAndALiveOneIsNot) {
  {
    const int left = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un where = {};
    where.sun_family = AF_UNIX;
    path_.copy(where.sun_path, sizeof where.sun_path - 1);
    ASSERT_EQ(bind(left, reinterpret_cast<const sockaddr*>(&where), sizeof where), 0);
    ASSERT_EQ(listen(left, 1), 0);
    EXPECT_FALSE(ConnectionListener::BindUnix(path_, 100).ok());
    close(left);
  }
  EXPECT_OK(ConnectionListener::BindUnix(path_, 100));
}

TEST_F(UnixListenerTest, AFileThatIsNotASocketStays) {
  close(open(path_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  EXPECT_FALSE(ConnectionListener::BindUnix(path_, 100).ok());
  EXPECT_EQ(access(path_.c_str(), F_OK), 0);
  unlink(path_.c_str());
}

}  // namespace
}  // namespace crout::connection_listener_test
