// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/device/host_device.h"
#include "tests/support/runners/device_under_test.h"

namespace crout::testing {

Device* DeviceUnderTest() {
  static Device* const device = host::MakeDevice({.threads = 2}).release();
  return device;
}

}  // namespace crout::testing
