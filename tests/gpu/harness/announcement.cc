// SPDX-License-Identifier: Apache-2.0

#include "tests/gpu/harness/announcement.h"

#include <cstdio>
#include <utility>

#include "crout_version.h"
#include "kernels/cuda/device/cuda_device.h"

namespace crout {

Announcement::Announcement(std::function<std::string()> describe)
    : describe_(std::move(describe)) {}

void Announcement::SetUp() {
  if (cuda::CountCudaDevices() == 0) {
    std::puts("ALL TESTS SKIPPED: no CUDA device on this machine");
    return;
  }
  const std::string device = describe_();
  std::printf("Device: %s\n", device.c_str());
  // Properties recorded outside a test appear at the head of the result file.
  ::testing::Test::RecordProperty("device", device);
  ::testing::Test::RecordProperty("version", CROUT_VERSION);
  ::testing::Test::RecordProperty("commit", CROUT_COMMIT);
}

}  // namespace crout
