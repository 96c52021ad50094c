// SPDX-License-Identifier: Apache-2.0

#include "tests/gpu/harness/gpu_testing.h"

#include <cstdio>

#include "tests/gpu/harness/announcement.h"

namespace crout {
namespace {

[[maybe_unused]] const ::testing::Environment* const kAnnouncement =
    ::testing::AddGlobalTestEnvironment(new Announcement([] { return Gpu().info().description; }));

}  // namespace

Device& Gpu() {
  static Device* const device = [] {
    auto made = cuda::MakeDevice(0, cuda::Options());
    if (!made.ok()) {
      std::fprintf(stderr, "cuda:0: %s\n", made.status().ToString().c_str());
      std::abort();
    }
    return made->release();  // never destroyed: its threads may run until the process ends
  }();
  return *device;
}

Device& Host() {
  static Device* const device = host::MakeDevice({}).release();
  return *device;
}

const DeviceReport& Bench::Wait() {
  const absl::Status status = context().Synchronize();
  EXPECT_TRUE(status.ok()) << status;
  return context().report();
}

Buffer Bench::Allocate(size_t bytes) {
  auto buffer = device_.memory().Allocate(bytes);
  EXPECT_TRUE(buffer.ok()) << buffer.status();
  return *std::move(buffer);
}

void Bench::Copy(const void* from, void* to, size_t bytes, bool to_device) {
  const absl::Status status =
      to_device ? ops().CopyToDevice(from, to, bytes) : ops().CopyToHost(from, to, bytes);
  EXPECT_TRUE(status.ok()) << status;
  Wait();
}

}  // namespace crout
