// SPDX-License-Identifier: Apache-2.0

#include "client/cli/report/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace crout::cli {
namespace {

constexpr int kSignals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
constexpr char kEnter[] = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J";
constexpr char kLeave[] = "\x1b[?25h\x1b[?1049l";

// Read by signal handlers. They are set before the handlers are installed.
termios saved_mode;
termios view_mode;

void Write(const char* text) {
  // Nothing can be done about an error.
  [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, text, std::strlen(text));
}

void Enter() {
  tcsetattr(STDIN_FILENO, TCSANOW, &view_mode);
  Write(kEnter);
}

void Leave() {
  tcsetattr(STDIN_FILENO, TCSANOW, &saved_mode);
  Write(kLeave);
}

// Calls only functions that are safe in a signal handler.
void RestoreAndStop(int signal) {
  const int error = errno;
  Leave();
  if (signal == SIGTSTP) {
    raise(SIGSTOP);
    Enter();  // after SIGCONT
  } else {
    // The default action follows when this handler returns, because of SA_RESETHAND.
    raise(signal);
  }
  errno = error;
}

}  // namespace

bool IsInteractive() { return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1; }

FullScreen::FullScreen() {
  tcgetattr(STDIN_FILENO, &saved_mode);
  view_mode = saved_mode;
  view_mode.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON);  // keeps the keys of signals
  view_mode.c_cc[VMIN] = 1;
  view_mode.c_cc[VTIME] = 0;
  Enter();
  for (const int number : kSignals) {
    struct sigaction action = {};
    sigaction(number, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;  // for example set by nohup
    action = {};
    action.sa_handler = RestoreAndStop;
    action.sa_flags = SA_RESTART | (number == SIGTSTP ? 0 : SA_RESETHAND);
    sigfillset(&action.sa_mask);
    sigaction(number, &action, nullptr);
  }
}

FullScreen::~FullScreen() {
  Leave();
  for (const int number : kSignals) {
    struct sigaction action = {};
    sigaction(number, nullptr, &action);
    if (action.sa_handler == RestoreAndStop) signal(number, SIG_DFL);
  }
}

QuitKey::QuitKey(Cancellation* cancellation) : cancellation_(cancellation) {
  if (pipe2(stop_, O_CLOEXEC) != 0) {
    stop_[0] = stop_[1] = -1;
    return;  // without a descriptor for the pipe there is no key; signals still end the program
  }
  reader_ = std::thread([this] { ReadKeys(); });
}

QuitKey::~QuitKey() {
  if (!reader_.joinable()) return;
  close(stop_[1]);
  reader_.join();
  close(stop_[0]);
}

void QuitKey::ReadKeys() {
  constexpr char kControlD = 4;
  for (;;) {
    pollfd files[] = {{STDIN_FILENO, POLLIN, 0}, {stop_[0], POLLIN, 0}};
    if (poll(files, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return;
    }
    if (files[1].revents != 0) return;
    char key = 0;
    const ssize_t count = read(STDIN_FILENO, &key, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0 || key == 'q' || key == 'Q' || key == kControlD) {
      cancellation_->Cancel();
      return;
    }
  }
}

}  // namespace crout::cli
