// SPDX-License-Identifier: Apache-2.0

// Processes by their pidfd, which no later process can take over.
#ifndef CROUT_SERVER_GROUPS_PROCESS_FILE_H_
#define CROUT_SERVER_GROUPS_PROCESS_FILE_H_

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>

#include "kernels/util/clock.h"
#include "kernels/util/owned_file.h"

namespace crout {

// glibc has functions for these calls from version 2.36 on.
inline OwnedFile OpenProcess(pid_t pid) {
  return OwnedFile(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

// The process may have ended.
inline void Kill(const OwnedFile& process) {
  syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
}

// Waits until the process has ended.
inline void AwaitEnd(const OwnedFile& process, std::chrono::steady_clock::time_point deadline) {
  pollfd ended{process.get(), POLLIN, 0};
  int result = 0;
  do {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyNow());
    result = poll(&ended, 1, static_cast<int>(std::max<int64_t>(0, left.count())));
  } while (result < 0 && errno == EINTR);
}

}  // namespace crout

#endif  // CROUT_SERVER_GROUPS_PROCESS_FILE_H_
