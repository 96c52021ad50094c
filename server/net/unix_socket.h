// SPDX-License-Identifier: Apache-2.0

// Who may connect to the Unix sockets that are served: connecting takes the right to write.
#ifndef CROUT_SERVER_NET_UNIX_SOCKET_H_
#define CROUT_SERVER_NET_UNIX_SOCKET_H_

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace crout {

struct SocketAccess {
  std::string mode;   // octal; "": by the umask
  std::string group;  // its name; "": the process's
};

// Of text as "660" or "0660": INVALID_ARGUMENT for anything else.
absl::StatusOr<mode_t> ParseSocketMode(const std::string& text);

// While it lives nobody but the process's own user can connect to a socket that is bound, if
// `access` says anything: GiveAccess() says who can. Of the whole process; not thread-safe.
class SocketsClosed {
 public:
  explicit SocketsClosed(const SocketAccess& access);
  ~SocketsClosed();
  SocketsClosed(const SocketsClosed&) = delete;  // The process has one umask.
  SocketsClosed& operator=(const SocketsClosed&) = delete;

 private:
  std::optional<mode_t> umask_;  // as it was
};

// Gives the socket at `path` the group, and then the mode. FAILED_PRECONDITION with the flag and
// what to do where the group is none or the process may not give it.
absl::Status GiveAccess(const std::string& path, const SocketAccess& access);

}  // namespace crout

#endif  // CROUT_SERVER_NET_UNIX_SOCKET_H_
