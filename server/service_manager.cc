// SPDX-License-Identifier: Apache-2.0

#include "server/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace crout {

bool NotifyServiceManager(absl::string_view state) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes the environment once threads run
  const char* const named = std::getenv("NOTIFY_SOCKET");
  const absl::string_view name = named == nullptr ? "" : named;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (name.empty() || name.size() >= sizeof(address.sun_path)) return false;
  std::memcpy(address.sun_path, name.data(), name.size());
  if (name[0] == '@') address.sun_path[0] = '\0';
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return false;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  const ssize_t sent = ::sendto(socket, state.data(), state.size(), MSG_NOSIGNAL,
                                reinterpret_cast<const sockaddr*>(&address), length);
  ::close(socket);
  return sent == static_cast<ssize_t>(state.size());
}

}  // namespace crout
