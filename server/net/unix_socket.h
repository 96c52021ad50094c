// SPDX-License-Identifier: Apache-2.0

// Unix sockets that the server listens on, and access to them. Connecting requires write permission
// on the socket.
#ifndef CROUT_SERVER_NET_UNIX_SOCKET_H_
#define CROUT_SERVER_NET_UNIX_SOCKET_H_

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace crout {

struct SocketAccess {
  std::string mode;   // octal; "": from the umask, or 660 if `group` is set
  std::string group;  // group name; "": the group of the process
};

// Parses a mode such as "660" or "0660". INVALID_ARGUMENT for any other text.
absl::StatusOr<mode_t> ParseSocketMode(const std::string& text);

// Changes the umask while it lives, if `access` sets a mode or group. Only the process's own user
// can then connect to a newly bound socket. GrantAccess() later grants the configured access.
// Affects the whole process; not thread-safe.
class ScopedSocketUmask {
 public:
  explicit ScopedSocketUmask(const SocketAccess& access);
  ~ScopedSocketUmask();
  ScopedSocketUmask(const ScopedSocketUmask&) = delete;  // The process has one umask.
  ScopedSocketUmask& operator=(const ScopedSocketUmask&) = delete;

 private:
  std::optional<mode_t> umask_;  // the original umask
};

// Sets the group and then the mode of the socket at `path`, if `access` sets one of them.
// FAILED_PRECONDITION, with the flag, if the group does not exist, or if the process may not change
// the group or the mode.
absl::Status GrantAccess(const std::string& path, const SocketAccess& access);

// Returns a non-blocking socket of `type`, such as SOCK_STREAM, that listens on `path`. Replaces a
// socket file that a dead process left behind, but not one with a live listener. UNAVAILABLE, with
// the system's message, if the path cannot be bound.
absl::StatusOr<int> ListenUnix(const std::string& path, int type);

// Returns the user at the other end of a Unix socket; 0 for other sockets.
uid_t UserAt(int socket);

// Waits 50 ms, or less if `stop` becomes readable: the pause of a listener before the next accept
// if the system has no descriptor or memory for a connection.
void PauseAccepting(int stop);

}  // namespace crout

#endif  // CROUT_SERVER_NET_UNIX_SOCKET_H_
