// SPDX-License-Identifier: Apache-2.0

#include "rank/network.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

namespace crout::rank {
namespace {

bool Write(const char* path, const std::string& text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(file);
  return written;
}

// Leaves the network as a user without privileges: in a new user namespace, in which the
// user keeps its ids.
bool LeaveUnprivileged() {
  const std::string user = std::to_string(geteuid());
  const std::string group = std::to_string(getegid());
  return unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 && Write("/proc/self/setgroups", "deny") &&
         Write("/proc/self/uid_map", user + " " + user + " 1") &&
         Write("/proc/self/gid_map", group + " " + group + " 1");
}

bool StartLoopback() {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return false;
  ifreq request = {};
  std::memcpy(request.ifr_name, "lo", sizeof("lo"));
  request.ifr_flags = IFF_UP;
  const bool started = ioctl(socket, SIOCSIFFLAGS, &request) == 0;
  close(socket);
  return started;
}

bool Leave() { return (unshare(CLONE_NEWNET) == 0 || LeaveUnprivileged()) && StartLoopback(); }

}  // namespace

bool LeaveNetwork() {
  // Some systems permit the first step and forbid a later one. A child tries all of them, because
  // they cannot be undone.
  const pid_t child = fork();
  if (child == 0) _exit(Leave() ? 0 : 1);
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0 && Leave();
}

}  // namespace crout::rank
