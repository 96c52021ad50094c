// croutd on a device that breaks down when SIGUSR1 comes: how the last device is lost.
#include <pthread.h>

#include <csignal>
#include <thread>
#include <utility>
#include <variant>

#include "server/config.h"
#include "server/log.h"
#include "server/serve.h"
#include "tests/support/fake_device.h"

namespace {

// Blocked before any thread starts; one thread takes it.
sigset_t BlockBreakdownSignal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return set;
}

}  // namespace

int main(int argc, char** argv) {
  const crout::StopSignals signals;
  const sigset_t breakdown = BlockBreakdownSignal();
  const auto parsed = crout::ParseCommandLine(argc, argv);
  if (const int* code = std::get_if<int>(&parsed)) return *code;
  const auto& config = std::get<crout::Config>(parsed);
  crout::ConfigureLog(config.log_level, config.log_format);
  const auto open = [&](const crout::Config&) {
    auto device = std::make_unique<crout::testing::FakeDevice>();
    std::thread([device = device.get(), breakdown] {
      int signal = 0;
      sigwait(&breakdown, &signal);
      device->BreakDown();
    }).detach();
    std::vector<std::unique_ptr<crout::Device>> devices;
    devices.push_back(std::move(device));
    return devices;
  };
  return crout::Serve(config, open, signals);
}
