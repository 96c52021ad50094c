// SPDX-License-Identifier: Apache-2.0

#include "server/serve.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "gtest/gtest.h"

namespace crout::service_manager_test {
namespace {

// The notification socket of a service manager. A `name` that begins with @ is in the abstract
// namespace.
class Manager {
 public:
  explicit Manager(const std::string& name) : socket_(::socket(AF_UNIX, SOCK_DGRAM, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), length), 0);
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  ~Manager() {
    unsetenv("NOTIFY_SOCKET");
    ::close(socket_);
  }
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  std::string Received() {
    char buffer[64];
    const ssize_t size = ::recv(socket_, buffer, sizeof(buffer), MSG_DONTWAIT);
    return size < 0 ? "nothing" : std::string(buffer, static_cast<size_t>(size));
  }

 private:
  int socket_;
};

TEST(ServiceManagerTest, NotifiesAPathAndAnAbstractName) {
  const std::string path = ::testing::TempDir() + "/crout_notify." + std::to_string(getpid());
  for (const std::string& name : {path, "@crout_notify." + std::to_string(getpid())}) {
    Manager manager(name);
    EXPECT_TRUE(NotifyServiceManager("READY=1")) << name;
    EXPECT_EQ(manager.Received(), "READY=1") << name;
  }
  setenv("NOTIFY_SOCKET", path.c_str(), 1);
  EXPECT_FALSE(NotifyServiceManager("READY=1")) << "nobody listens any more";
  unlink(path.c_str());
}

TEST(ServiceManagerTest, DoesNothingWithoutAServiceManager) {
  unsetenv("NOTIFY_SOCKET");
  EXPECT_FALSE(NotifyServiceManager("READY=1"));
  setenv("NOTIFY_SOCKET", std::string(200, 'x').c_str(), 1);
  EXPECT_FALSE(NotifyServiceManager("READY=1"));
  unsetenv("NOTIFY_SOCKET");
}

}  // namespace
}  // namespace crout::service_manager_test
