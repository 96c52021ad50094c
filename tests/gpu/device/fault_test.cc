// SPDX-License-Identifier: Apache-2.0

// Tests that a sticky error makes the device unavailable. The test has its own program, because the
// error lasts until the process ends.
#include "tests/gpu/harness/gpu_testing.h"

namespace crout::fault_test {
namespace {

class FaultTest : public GpuTest {};

TEST_F(FaultTest, StickyErrorMakesTheDeviceUnhealthy) {
  Bench bench(Gpu());
  auto waiting = Gpu().CreateContext();
  ASSERT_TRUE(waiting.ok());
  ASSERT_TRUE(Gpu().healthy());
  Buffer buffer = bench.Allocate(256);
  // The address is not allocated, so the kernel that reads it faults.
  auto* const wild = reinterpret_cast<std::byte*>(uintptr_t{1} << 46);
  ASSERT_TRUE(bench.ops()
                  .Export({wild, DType::kFloat64, 8, 4, 8},
                          {nullptr, DType::kFloat64, Layout::kColumnMajor, 8, 4}, buffer.data())
                  .ok());
  EXPECT_EQ(bench.context().Synchronize().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(Gpu().healthy());

  // Every later call reports the error, also in other contexts, and no call hangs or crashes.
  EXPECT_EQ((*waiting)->Synchronize().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(bench.ops().CopyOnDevice(buffer.data(), buffer.data(), 8).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(Gpu().CreateContext().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Gpu().StartUpload({buffer.data(), 256}).status().code(),
            absl::StatusCode::kUnavailable);
  buffer.reset();
}

}  // namespace
}  // namespace crout::fault_test
