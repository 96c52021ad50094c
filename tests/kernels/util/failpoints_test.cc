// SPDX-License-Identifier: Apache-2.0

// Tests that failpoints have the requested effects, and no effect without a request.
#include "tests/support/timing/failpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "kernels/util/clock.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::failpoints_test {
namespace {

TEST(FailpointsTest, DoesNothingWithoutAHandler) {
  std::array<std::byte, 2> bytes = {};
  EXPECT_OK(Failpoint("test.place", bytes));
  EXPECT_EQ(bytes, (std::array<std::byte, 2>{}));
}

TEST(FailpointsTest, HoldsUntilReleased) {
  Failpoints failpoints;
  failpoints.Hold("test.place");
  std::atomic<bool> passed = false;
  std::thread held([&] {
    EXPECT_OK(Failpoint("test.place"));
    passed = true;
  });
  failpoints.AwaitReached("test.place");
  EXPECT_OK(Failpoint("test.other"));
  EXPECT_FALSE(passed);
  failpoints.Release("test.place");
  held.join();
  EXPECT_TRUE(passed);
  EXPECT_OK(Failpoint("test.place"));
  EXPECT_EQ(failpoints.reached("test.place"), 2);
}

TEST(FailpointsTest, ReleasesHeldThreadsOnDestruction) {
  std::thread held;
  {
    Failpoints failpoints;
    failpoints.Hold("test.place");
    held = std::thread([] { EXPECT_OK(Failpoint("test.place")); });
    failpoints.AwaitReached("test.place");
  }
  held.join();
}

TEST(FailpointsTest, FailsTheRequestedNumberOfTimes) {
  Failpoints failpoints;
  failpoints.Fail("test.place", absl::ResourceExhaustedError("no more"), 2);
  EXPECT_THAT(Failpoint("test.place"), FailsWith(absl::StatusCode::kResourceExhausted, "no more"));
  EXPECT_THAT(Failpoint("test.place"), FailsWith(absl::StatusCode::kResourceExhausted, "no more"));
  EXPECT_OK(Failpoint("test.place"));
}

TEST(FailpointsTest, FlipsOneBitOnce) {
  Failpoints failpoints;
  failpoints.FlipBit("test.place", 9);
  std::array<std::byte, 1> short_one = {};
  EXPECT_OK(Failpoint("test.place", short_one));
  EXPECT_EQ(short_one[0], std::byte{0});
  std::array<std::byte, 2> bytes = {};
  EXPECT_OK(Failpoint("test.place", bytes));
  EXPECT_OK(Failpoint("test.place", bytes));
  EXPECT_EQ(bytes[0], std::byte{0});
  EXPECT_EQ(bytes[1], std::byte{2});
}

TEST(FailpointsTest, AdvancesBothClocks) {
  Failpoints failpoints;
  const absl::Time wall = WallNow();
  const auto steady = SteadyNow();
  failpoints.Advance(absl::Hours(2));
  EXPECT_GE(WallNow() - wall, absl::Hours(2));
  EXPECT_GE(SteadyNow() - steady, std::chrono::hours(2));
}

}  // namespace
}  // namespace crout::testing::failpoints_test
