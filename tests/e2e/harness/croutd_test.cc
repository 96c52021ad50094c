// SPDX-License-Identifier: Apache-2.0

// croutd with failpoints that a test controls from another process, and optionally a fake device.
//
// usage: croutd_test --failpoints=SOCKET [--fake-device] [croutd's flags...]
//
// --fake-device adds a device with separate memory, so that host memory is a second tier, and with
// --out-of-core-memory its out-of-core device. The device breaks down when the failpoint
// "fake_device.healthy" fails.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/strip.h"
#include "kernels/host/device/host_device.h"
#include "kernels/host/device/openmp_environment.h"
#include "kernels/util/status_macros.h"
#include "server/croutd.h"
#include "server/devices.h"
#include "tests/e2e/harness/failpoint_channel.h"
#include "tests/support/fakes/fake_device.h"

namespace {

absl::StatusOr<std::vector<std::shared_ptr<crout::Device>>> OpenFakeDevice(
    const crout::Config& config) {
  std::vector<std::shared_ptr<crout::Device>> devices;
  devices.push_back(std::make_unique<crout::testing::FakeDevice>());
  if (config.pool.out_of_core_bytes > 0) {
    CROUT_RETURN_IF_ERROR(crout::AddOutOfCoreDevices(
        config.pool.out_of_core_bytes, crout::host::MakeExecutor(config.host_threads), devices));
  }
  return devices;
}

}  // namespace

int main(int argc, char** argv) {
  // Precedes the creation of the socket, because it may restart the process.
  crout::host::UsePassiveOpenMpWaits(argv);
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
  // Never destroyed, so that it outlives every thread.
  static auto* const failpoints = new crout::testing::Failpoints;
  crout::e2e::ServeFailpoints(socket, *failpoints);
  const auto count = static_cast<int>(rest.size());
  rest.push_back(nullptr);
  return fake_device ? crout::RunCroutd(count, rest.data(), OpenFakeDevice)
                     : crout::RunCroutd(count, rest.data(), crout::OpenDevices);
}
