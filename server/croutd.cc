// SPDX-License-Identifier: Apache-2.0

#include "server/croutd.h"

#include <sys/prctl.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <system_error>
#include <variant>

#include "absl/synchronization/mutex.h"
#include "kernels/host/device/openmp_environment.h"
#include "server/auth/token_command.h"
#include "server/config.h"
#include "server/observability/log/log.h"

namespace crout {
namespace {

// Excludes keys and tokens from the core files of all tools. Also prevents other processes of the
// same user from reading the daemon's memory.
void HideMemory() { prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

int RunServer(const Config& config, OpenDevicesFunction open_devices, const StopSignals& signals) {
  ConfigureLog(config.log_level, config.log_format);
  RedirectLibraryLogs();
  const int code = Serve(config, open_devices, signals);
  FlushLog();
  return code;
}

}  // namespace

int RunCroutd(int argc, char** argv, OpenDevicesFunction open_devices) {
  if (argc > 1 && std::string_view(argv[1]) == "token") return RunTokenCommand(argc - 1, argv + 1);
  host::UsePassiveOpenMpWaits(argv);
  // Debian's Abseil checks each acquisition of a mutex for a deadlock unless this is set.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const StopSignals signals;  // before any thread starts
  // A closed peer or log reader must fail the write, not end the daemon.
  std::signal(SIGPIPE, SIG_IGN);
  const auto parsed = ParseCommandLine(argc, argv);
  if (const int* code = std::get_if<int>(&parsed)) return *code;
  const auto& config = std::get<Config>(parsed);
  if (config.tls.enabled() || !config.identities_file.empty() || !config.store_key_file.empty()) {
    HideMemory();
  }
  try {
    return RunServer(config, open_devices, signals);
  } catch (const std::system_error& error) {  // thrown by StartThread
    FlushLog();
    std::cerr << "croutd: RESOURCE_EXHAUSTED: cannot start a thread (" << error.what()
              << "). Raise the limit of the user (ulimit -u), the service (TasksMax) or the "
                 "container (pids.max)."
              << std::endl;
    std::_Exit(EXIT_FAILURE);  // Threads that already started are still running.
  }
}

}  // namespace crout
