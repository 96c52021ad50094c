// SPDX-License-Identifier: Apache-2.0

#include "rank/children.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <thread>

#include "kernels/util/exec_arguments.h"

namespace crout::rank {
namespace {

// Variables of resource managers, which change what Open MPI does.
constexpr std::string_view kForeign[] = {"SLURM_", "PMI_", "PMIX_", "OMPI_", "PBS_", "LSB_"};

// The child after fork(). Other threads may have held locks, so it makes only system calls.
[[noreturn]] void Execute(char* const* command, char* const* environment, const char* log,
                          pid_t parent) {
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  const int input = open("/dev/null", O_RDONLY);
  const int output = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (input < 0 || output < 0 || dup2(input, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
      dup2(output, STDERR_FILENO) < 0) {
    _exit(1);
  }
  syscall(SYS_close_range, STDERR_FILENO + 1, UINT_MAX, CLOSE_RANGE_CLOEXEC);
  execvpe(command[0], command, environment);
  constexpr char kMessage[] = "cannot be executed. Install Open MPI (Debian: openmpi-bin)\n";
  if (write(STDERR_FILENO, command[0], std::strlen(command[0])) < 0 ||
      write(STDERR_FILENO, " ", 1) < 0 ||
      write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1) < 0) {
    _exit(1);
  }
  _exit(1);
}

void KillChildren() {
  std::error_code error;
  for (std::filesystem::directory_iterator task("/proc/self/task", error), end;
       !error && task != end; task.increment(error)) {
    std::ifstream children(task->path() / "children");
    for (pid_t pid = 0; children >> pid;) kill(pid, SIGKILL);
  }
}

}  // namespace

Children::Children() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

bool Children::Start(const std::vector<std::string>& command,
                     const std::vector<std::string>& variables, const std::string& log) {
  const std::vector<std::string> environment = EnvironmentWith(variables, kForeign);
  const std::vector<char*> arguments = Pointers(command);
  const std::vector<char*> entries = Pointers(environment);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) Execute(arguments.data(), entries.data(), log.c_str(), parent);
  if (pid > 0) started_.push_back(pid);
  return pid > 0;
}

bool Children::AnyEnded() {
  for (pid_t pid = 0; (pid = waitpid(-1, nullptr, WNOHANG)) > 0;) {
    any_ended_ = any_ended_ || std::ranges::find(started_, pid) != started_.end();
  }
  return any_ended_;
}

void Children::KillAll() {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(kEndSeconds);
  while (true) {
    const pid_t pid = waitpid(-1, nullptr, WNOHANG);
    if (pid > 0) continue;
    if (pid < 0 && errno == ECHILD) break;
    if (Clock::now() >= deadline) break;
    KillChildren();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  started_.clear();
  any_ended_ = false;
}

}  // namespace crout::rank
