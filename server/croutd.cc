// SPDX-License-Identifier: Apache-2.0

#include "server/croutd.h"

#include <malloc.h>
#include <sys/prctl.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <system_error>
#include <variant>

#include "kernels/host/device/openmp_environment.h"
#include "server/auth/token_command.h"
#include "server/config.h"
#include "server/observability/log/grpc_log.h"
#include "server/observability/log/log.h"

namespace crout {
namespace {

// gRPC receives into buffers from malloc, a megabyte and more at a time, on one thread after the
// other. By default each would be mapped, faulted in page by page and unmapped again, and every
// thread's arena would keep its own: both cost more than the copy.
void KeepReceiveBuffersWarm() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 32 << 20);
  mallopt(M_ARENA_MAX, 1);
}

// Keys and tokens go into no core file, whatever takes those on this system, and are for no other
// process of the daemon's user to look up.
void HideMemory() { prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

int RunServer(const Config& config, OpenDevicesFunction open_devices, const StopSignals& signals) {
  ConfigureLog(config.log_level, config.log_format);
  TakeLibraryLogs();
  const int code = Serve(config, open_devices, signals);
  FlushLog();
  return code;
}

}  // namespace

int RunCroutd(int argc, char** argv, OpenDevicesFunction open_devices) {
  if (argc > 1 && std::string_view(argv[1]) == "token") return RunTokenCommand(argc - 1, argv + 1);
  host::UsePassiveOpenMpWaits(argv);
  KeepReceiveBuffersWarm();
  const StopSignals signals;  // before any thread starts
  // A peer or a reader of the log that is gone is an error of that write, not the end of the
  // daemon.
  std::signal(SIGPIPE, SIG_IGN);
  const auto parsed = ParseCommandLine(argc, argv);
  if (const int* code = std::get_if<int>(&parsed)) return *code;
  const auto& config = std::get<Config>(parsed);
  if (config.tls.enabled() || !config.identities_file.empty()) HideMemory();
  try {
    return RunServer(config, open_devices, signals);
  } catch (const std::system_error& error) {  // of StartThread
    FlushLog();
    std::cerr << "croutd: RESOURCE_EXHAUSTED: cannot start a thread (" << error.what()
              << "). Raise the limit of the user (ulimit -u), the service (TasksMax) or the "
                 "container (pids.max)."
              << std::endl;
    std::_Exit(EXIT_FAILURE);  // Threads that started already still run.
  }
}

}  // namespace crout
