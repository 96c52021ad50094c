// SPDX-License-Identifier: Apache-2.0

#include "server/groups/rank_processes.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/util/exec_arguments.h"
#include "kernels/util/status_macros.h"
#include "rank/join_environment.h"

namespace crout {
namespace {

// Starts the process in a new process group, so that a terminal's interrupt reaches the
// daemon alone. Both output streams go to `log`. The process has `memory` as
// rank::kMemoryDescriptor and no other file of this process. Returns an errno.
int Spawn(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
          const std::string& log, int memory, pid_t* pid) {
  int error = 0;
  const auto check = [&error](int code) {
    if (error == 0) error = code;
  };
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  check(posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0));
  check(posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                         O_WRONLY | O_CREAT | O_APPEND, 0600));
  check(posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO));
  check(posix_spawn_file_actions_adddup2(&actions, memory, rank::kMemoryDescriptor));
  check(posix_spawn_file_actions_addclosefrom_np(&actions, rank::kMemoryDescriptor + 1));
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  check(posix_spawnattr_setsigmask(&attributes, &none));
  check(posix_spawnattr_setsigdefault(&attributes, &all));
  check(posix_spawnattr_setpgroup(&attributes, 0));
  check(posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP));
  if (error == 0) {
    error = posix_spawn(pid, arguments.front().c_str(), &actions, &attributes,
                        Pointers(arguments).data(), Pointers(environment).data());
  }
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RankProcesses>> RankProcesses::Start(const RankFolder& folder,
                                                                    const RankStart& start) {
  CROUT_ASSIGN_OR_RETURN(const std::string files, folder.RenewFiles());
  const std::vector<std::string> arguments = {start.program, absl::StrCat("--start=", start.ranks),
                                              absl::StrCat("--join=unix:", folder.socket())};
  const std::vector<std::string> environment = EnvironmentWith(
      {absl::StrCat(rank::kTokenVariable, "=", start.token),
       absl::StrCat(rank::kGpusVariable, "=", absl::StrJoin(start.gpus, ",")),
       absl::StrCat("OMP_NUM_THREADS=", start.threads), absl::StrCat("TMPDIR=", files)});
  pid_t pid = 0;
  const int error = Spawn(arguments, environment, folder.log(), start.memory, &pid);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot start ", start.program, ": ", std::strerror(error)));
  }
  return std::unique_ptr<RankProcesses>(new RankProcesses(pid));
}

RankProcesses::~RankProcesses() {
  if (pid_ == 0) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool RankProcesses::HasOwnNetwork() const {
  struct stat ours, theirs;
  return stat("/proc/self/ns/net", &ours) == 0 &&
         stat(absl::StrCat("/proc/", pid_, "/ns/net").c_str(), &theirs) == 0 &&
         ours.st_ino != theirs.st_ino;
}

bool RankProcesses::ended() {
  if (pid_ != 0 && waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = 0;
  return pid_ == 0;
}

}  // namespace crout
