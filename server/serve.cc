// SPDX-License-Identifier: Apache-2.0

#include "server/serve.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iostream>
#include <utility>

#include "kernels/util/status_macros.h"
#include "server/daemon.h"
#include "server/observability/log/log.h"
#include "server/rpc/codec/status.h"

namespace crout {
namespace {

constexpr int kFailure = 1;

sigset_t Signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

// Returns whether `parent` is no longer the parent of this process; false for 0. A poll, because
// PR_SET_PDEATHSIG would also report the end of the thread that started the daemon.
bool ParentEnded(pid_t parent) {
  if (parent == 0 || getppid() == parent) return false;
  Log(LogLevel::kInfo, "parent_ended", {{"pid", parent}});
  return true;
}

absl::StatusOr<std::unique_ptr<Daemon>> StartDaemon(const Config& config,
                                                    OpenDevicesFunction open_devices) {
  CROUT_ASSIGN_OR_RETURN(auto devices, open_devices(config));
  return Daemon::Start(config, std::move(devices));
}

}  // namespace

StopSignals::StopSignals() {
  const sigset_t set = Signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

bool StopSignals::Wait(int milliseconds) const {
  const sigset_t set = Signals();
  const timespec timeout = {milliseconds / 1000, (milliseconds % 1000) * 1000000L};
  siginfo_t sent = {};
  const int signal = sigtimedwait(&set, &sent, &timeout);
  if (signal <= 0) return false;
  Log(LogLevel::kInfo, "audit",
      {{"method", "drain"}, {"signal", signal}, {"pid", sent.si_pid}, {"uid", sent.si_uid}});
  return true;
}

int Serve(const Config& config, OpenDevicesFunction open_devices, const StopSignals& signals) {
  auto daemon = StartDaemon(config, open_devices);
  if (!daemon.ok()) {
    FlushLog();  // earlier log lines must precede the message
    std::cerr << "croutd: " << absl::StatusCodeToString(daemon.status().code()) << ": "
              << daemon.status().message() << "\n";
    return kFailure;
  }
  std::cout << (*daemon)->ReadyLine() << std::endl;
  NotifyServiceManager("READY=1");

  constexpr int kPollMs = 500;
  bool stop = false;
  while (!stop && (*daemon)->any_device_healthy()) {
    stop = signals.Wait(kPollMs) || ParentEnded(config.stop_with_parent);
  }
  if (!stop) Log(LogLevel::kError, "all_devices_lost");

  NotifyServiceManager("STOPPING=1");
  bool second_signal = false;
  const auto cancel_now = [&] { return second_signal = second_signal || signals.Wait(0); };
  if (!(*daemon)->Drain(cancel_now)) {
    // A job cannot be interrupted while it runs a vendor routine. Its call has been answered, and
    // nothing in the process needs to be saved.
    Log(LogLevel::kWarn, "jobs_abandoned");
    FlushLog();
    std::_Exit(stop ? EXIT_SUCCESS : kFailure);
  }
  daemon->reset();
  Log(LogLevel::kInfo, "daemon_stopped");
  return stop ? EXIT_SUCCESS : kFailure;
}

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
