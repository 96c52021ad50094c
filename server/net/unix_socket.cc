// SPDX-License-Identifier: Apache-2.0

#include "server/net/unix_socket.h"

#include <grp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

constexpr mode_t kAllButOwner = S_IRWXG | S_IRWXO;
constexpr int kBacklog = 4096;

absl::Status SystemError(const char* call) {
  return absl::UnavailableError(absl::StrCat(call, ": ", std::strerror(errno)));
}

absl::StatusOr<gid_t> FindGroup(const std::string& name) {
  constexpr size_t kMaxBytes = size_t{1} << 20;  // enough for a group with very many members
  for (size_t bytes = 4096; bytes <= kMaxBytes; bytes *= 4) {
    std::vector<char> buffer(bytes);
    group entry = {};
    group* found = nullptr;
    if (getgrnam_r(name.c_str(), &entry, buffer.data(), bytes, &found) == ERANGE) continue;
    if (found != nullptr) return found->gr_gid;
    break;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("--unix-group: this system has no group '", name, "'"));
}

}  // namespace

absl::StatusOr<mode_t> ParseSocketMode(const std::string& text) {
  const bool octal =
      (text.size() == 3 || (text.size() == 4 && text[0] == '0')) &&
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '7'; });
  if (octal) return static_cast<mode_t>(std::stoul(text, nullptr, 8));
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is not a mode; write three octal digits, such as 660"));
}

ScopedSocketUmask::ScopedSocketUmask(const SocketAccess& access) {
  if (!access.mode.empty() || !access.group.empty()) umask_ = umask(kAllButOwner);
}

ScopedSocketUmask::~ScopedSocketUmask() {
  if (umask_) umask(*umask_);
}

absl::Status GrantAccess(const std::string& path, const SocketAccess& access) {
  if (access.mode.empty() && access.group.empty()) return absl::OkStatus();
  if (!access.group.empty()) {
    CROUT_ASSIGN_OR_RETURN(const gid_t group, FindGroup(access.group));
    if (chown(path.c_str(), static_cast<uid_t>(-1), group) != 0) {
      return absl::FailedPreconditionError(absl::StrCat(
          "--unix-group: cannot change the group of ", path, " to '", access.group,
          "': ", std::strerror(errno), ". The user of the daemon must be a member of the group"));
    }
  }
  // With a group but no mode, the socket is for its owner and the group.
  CROUT_ASSIGN_OR_RETURN(const mode_t mode,
                         ParseSocketMode(access.mode.empty() ? "660" : access.mode));
  if (chmod(path.c_str(), mode) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("--unix-mode: ", path, ": ", std::strerror(errno)));
}

absl::StatusOr<int> ListenUnix(const std::string& path, int type) {
  sockaddr_un where = {};
  where.sun_family = AF_UNIX;
  if (path.size() >= sizeof where.sun_path)
    return absl::UnavailableError(absl::StrCat("the path of the socket has ", path.size(),
                                               " bytes: shorten it to ",
                                               sizeof where.sun_path - 1));
  path.copy(where.sun_path, path.size());
  const auto* const address = reinterpret_cast<const sockaddr*>(&where);
  const int fd = socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return SystemError("socket");
  absl::Cleanup close_on_return = [fd] { close(fd); };
  struct stat there = {};
  if (lstat(path.c_str(), &there) == 0 && S_ISSOCK(there.st_mode)) {
    const int probe = socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (probe < 0) return SystemError("socket");
    // EAGAIN: a process is listening but is slow to accept. EPROTOTYPE: its socket has another
    // type.
    const bool in_use =
        connect(probe, address, sizeof where) == 0 || errno == EAGAIN || errno == EPROTOTYPE;
    close(probe);
    if (in_use) {
      errno = EADDRINUSE;
      return SystemError("bind");
    }
    unlink(path.c_str());
  }
  if (bind(fd, address, sizeof where) != 0 || listen(fd, kBacklog) != 0) return SystemError("bind");
  std::move(close_on_return).Cancel();
  return fd;
}

uid_t UserAt(int socket) {
  ucred peer = {};
  socklen_t size = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.uid : 0;
}

void PauseAccepting(int stop) {
  constexpr int kPauseMs = 50;
  pollfd polled = {.fd = stop, .events = POLLIN, .revents = 0};
  poll(&polled, 1, kPauseMs);
}

}  // namespace crout
