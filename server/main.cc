// croutd: parses its settings, serves until a signal comes, drains, exits.
//
// Exit codes: 0 after a drain, 1 if it could not start or lost its last device, 2 for bad usage.

#include <malloc.h>

#include <variant>

#include "kernels/host/openmp_environment.h"
#include "server/config.h"
#include "server/devices.h"
#include "server/log.h"
#include "server/serve.h"

namespace {

// gRPC receives into buffers from malloc, a megabyte and more at a time, on one thread after the
// other. By default each would be mapped, faulted in page by page and unmapped again, and every
// thread's arena would keep its own: both cost more than the copy.
void KeepReceiveBuffersWarm() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 32 << 20);
  mallopt(M_ARENA_MAX, 1);
}

}  // namespace

int main(int argc, char** argv) {
  crout::UsePassiveOpenMpWaits(argv);
  KeepReceiveBuffersWarm();
  const crout::StopSignals signals;  // before any thread starts
  const auto parsed = crout::ParseCommandLine(argc, argv);
  if (const int* code = std::get_if<int>(&parsed)) return *code;
  const auto& config = std::get<crout::Config>(parsed);
  crout::ConfigureLog(config.log_level, config.log_format);
  return crout::Serve(config, crout::OpenDevices, signals);
}
