// croutd with failpoints that a test arms from outside, and, on request, a fake device.
//
// usage: croutd_test --failpoints=SOCKET [--fake-device] [croutd's flags...]
//   --fake-device   a device with memory of its own, beside which the host is a tier; it breaks
//   down
//                   when the failpoint "fake_device.healthy" fails
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/strip.h"
#include "kernels/host/device/openmp_environment.h"
#include "server/croutd.h"
#include "server/devices.h"
#include "tests/e2e/failpoint_channel.h"
#include "tests/support/fake_device.h"

namespace {

absl::StatusOr<std::vector<std::unique_ptr<crout::Device>>> OpenFakeDevice(const crout::Config&) {
  std::vector<std::unique_ptr<crout::Device>> devices;
  devices.push_back(std::make_unique<crout::testing::FakeDevice>());
  return devices;
}

}  // namespace

int main(int argc, char** argv) {
  crout::host::UsePassiveOpenMpWaits(
      argv);  // may start the process anew: before the socket is there
  std::vector<char*> rest;
  std::string socket;
  bool fake_device = false;
  for (int i = 0; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (absl::ConsumePrefix(&argument, "--failpoints=")) {
      socket = std::string(argument);
    } else if (argument == "--fake-device") {
      fake_device = true;
    } else {
      rest.push_back(argv[i]);
    }
  }
  if (socket.empty()) {
    std::fputs("usage: croutd_test --failpoints=SOCKET [--fake-device] [FLAGS...]\n", stderr);
    return 2;
  }
  // Outlives every thread: the process ends without destroying it.
  static auto* const failpoints = new crout::testing::Failpoints;
  crout::e2e::ServeFailpoints(socket, *failpoints);
  const auto count = static_cast<int>(rest.size());
  rest.push_back(nullptr);
  return fake_device ? crout::RunCroutd(count, rest.data(), OpenFakeDevice)
                     : crout::RunCroutd(count, rest.data(), crout::OpenDevices);
}
