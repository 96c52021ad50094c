// SPDX-License-Identifier: Apache-2.0

#include "tests/gpu/harness/gpu_testing.h"
#include "tests/support/runners/device_under_test.h"

namespace crout::testing {

Device* DeviceUnderTest() { return cuda::CountCudaDevices() == 0 ? nullptr : &Gpu(); }

}  // namespace crout::testing
