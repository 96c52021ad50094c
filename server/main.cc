// croutd: parses its settings, serves until a signal comes, drains, exits.
//
// Exit codes: 0 after a drain, 1 if it could not start or lost its last device, 2 for bad usage.

#include <malloc.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <variant>

#include "kernels/host/openmp_environment.h"
#include "server/config.h"
#include "server/daemon.h"
#include "server/log.h"
#include "server/rpc/status.h"

namespace {

constexpr int kFailure = 1;

// SIGTERM and SIGINT, blocked in every thread and taken here: no code runs in a signal handler.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }

  // Whether one came within `milliseconds`.
  bool Wait(int milliseconds) const {
    const timespec timeout = {milliseconds / 1000, (milliseconds % 1000) * 1000000L};
    return sigtimedwait(&set_, nullptr, &timeout) > 0;
  }

 private:
  sigset_t set_;
};

int Serve(const crout::Config& config, const StopSignals& signals) {
  auto daemon = crout::Daemon::Start(config);
  if (!daemon.ok()) {
    const auto code = static_cast<grpc::StatusCode>(daemon.status().code());
    std::cerr << "croutd: " << crout::CodeName(code) << ": " << daemon.status().message() << "\n";
    return kFailure;
  }
  std::cout << (*daemon)->ReadyLine() << std::endl;

  constexpr int kHealthPollMs = 500;
  bool stop = false;
  while (!stop && (*daemon)->any_device_healthy()) stop = signals.Wait(kHealthPollMs);
  if (!stop) crout::Log(crout::LogLevel::kError, "no_healthy_device");

  bool hurried = false;
  const auto hurry = [&] { return hurried = hurried || signals.Wait(0); };
  if (!(*daemon)->Drain(hurry)) {
    // A vendor routine runs to its end, however long; its caller has been answered, and nothing
    // that the daemon holds outlives it.
    crout::Log(crout::LogLevel::kWarn, "exit_with_jobs_running");
    std::fflush(nullptr);
    std::_Exit(stop ? EXIT_SUCCESS : kFailure);
  }
  daemon->reset();
  crout::Log(crout::LogLevel::kInfo, "stopped");
  return stop ? EXIT_SUCCESS : kFailure;
}

// gRPC receives into buffers from malloc, a megabyte and more at a time. By default each would be
// mapped, faulted in page by page and unmapped again, which costs more than the copy.
void KeepReceiveBuffersWarm() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 32 << 20);
}

}  // namespace

int main(int argc, char** argv) {
  crout::UsePassiveOpenMpWaits(argv);
  KeepReceiveBuffersWarm();
  const StopSignals signals;  // before any thread starts
  const auto parsed = crout::ParseCommandLine(argc, argv);
  if (const int* code = std::get_if<int>(&parsed)) return *code;
  const auto& config = std::get<crout::Config>(parsed);
  crout::ConfigureLog(config.log_level, config.log_format);
  return Serve(config, signals);
}
