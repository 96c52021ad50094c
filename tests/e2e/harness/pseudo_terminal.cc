// SPDX-License-Identifier: Apache-2.0

#include "tests/e2e/harness/pseudo_terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "tests/support/timing/eventually.h"

namespace crout::e2e {

PseudoTerminal::PseudoTerminal(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  if (openpty(&terminal_, &keeper_, nullptr, nullptr, nullptr) != 0) {
    ADD_FAILURE() << "cannot open a pseudo-terminal";
    return;
  }
  fcntl(terminal_, F_SETFD, FD_CLOEXEC);
  pid_ = fork();
  if (pid_ != 0) return;
  // Only system calls are permitted between fork and exec.
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // kills the child if the test ends
  login_tty(keeper_);
  execv(arguments[0], arguments.data());
  _exit(127);
}

PseudoTerminal::~PseudoTerminal() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(terminal_);
  close(keeper_);
}

void PseudoTerminal::Type(const std::string& keys) const {
  EXPECT_EQ(write(terminal_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
}

void PseudoTerminal::Signal(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

bool PseudoTerminal::Read() {
  pollfd file = {terminal_, POLLIN, 0};
  while (poll(&file, 1, 10) > 0) {
    char text[4096];
    const ssize_t count = read(terminal_, text, sizeof text);
    if (count <= 0) return false;
    screen_.append(text, static_cast<size_t>(count));
  }
  return true;
}

bool PseudoTerminal::Shows(const std::string& text) {
  const absl::Time deadline = absl::Now() + testing::kTestTimeout;
  while (Read() && absl::Now() < deadline) {
    if (absl::StrContains(screen_, text)) return true;
  }
  ADD_FAILURE() << "the terminal does not show '" << text << "':\n" << screen_;
  return false;
}

int PseudoTerminal::Wait() {
  const absl::Time deadline = absl::Now() + testing::kTestTimeout;
  while (pid_ > 0 && absl::Now() < deadline) {
    Read();
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) != pid_) continue;
    pid_ = -1;
    Read();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  ADD_FAILURE() << "the program did not end:\n" << screen_;
  return -1;
}

bool PseudoTerminal::HasLineMode() const {
  termios mode;
  return tcgetattr(keeper_, &mode) == 0 && (mode.c_lflag & ECHO) != 0 &&
         (mode.c_lflag & ICANON) != 0;
}

}  // namespace crout::e2e
