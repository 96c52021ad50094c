// SPDX-License-Identifier: Apache-2.0

#include "server/memory_return.h"

#include <gtest/gtest.h>

namespace crout::memory_return_test {
namespace {

using std::chrono::seconds;

class MemoryReturnTest : public ::testing::Test {
 protected:
  // Reports `activity` at time `second`. Returns how often memory was returned so far.
  int At(int second, const Activity& activity) { return At(second, activity, return_); }
  int At(int second, const Activity& activity, MemoryReturn& memory_return) {
    memory_return.Observe(activity, MemoryReturn::TimePoint(seconds(second)));
    return times_;
  }

  int times_ = 0;
  MemoryReturn return_{absl::Seconds(10), [this] { ++times_; }};
};

TEST_F(MemoryReturnTest, ReturnsMemoryOnceAfterAnIdlePeriod) {
  const Activity after_a_call{.calls = 1};
  EXPECT_EQ(At(100, after_a_call), 0);
  EXPECT_EQ(At(109, after_a_call), 0);
  EXPECT_EQ(At(110, after_a_call), 1);
  EXPECT_EQ(At(1000, after_a_call), 1) << "nothing has happened since";
  EXPECT_EQ(At(1001, {.calls = 2}), 1);
  EXPECT_EQ(At(1011, {.calls = 2}), 2);
}

TEST_F(MemoryReturnTest, NothingIsReturnedBeforeTheFirstCall) { EXPECT_EQ(At(1000, {}), 0); }

TEST_F(MemoryReturnTest, CallsBetweenTwoObservationsCount) {
  for (uint64_t call = 1; call <= 50; ++call) {
    EXPECT_EQ(At(static_cast<int>(call), {.calls = call}), 0) << "seen idle each time";
  }
}

TEST_F(MemoryReturnTest, WaitsForRunningCallsAndJobs) {
  EXPECT_EQ(At(100, {.calls = 1, .in_flight = 1}), 0);
  EXPECT_EQ(At(200, {.calls = 1, .in_flight = 1}), 0) << "a call";
  EXPECT_EQ(At(201, {.calls = 1, .jobs = 1}), 0);
  EXPECT_EQ(At(300, {.calls = 1, .jobs = 1}), 0) << "a job that outlived it";
  EXPECT_EQ(At(301, {.calls = 1}), 0);
  EXPECT_EQ(At(311, {.calls = 1}), 1);
}

TEST_F(MemoryReturnTest, ALeaseThatEndsCountsAsWork) {
  At(100, {.calls = 1, .reserved = 4096});
  EXPECT_EQ(At(110, {.calls = 1, .reserved = 4096}), 1);
  EXPECT_EQ(At(3600, {.calls = 1}), 1);
  EXPECT_EQ(At(3610, {.calls = 1}), 2);
}

TEST_F(MemoryReturnTest, AnInfiniteIdleTimeReturnsNothing) {
  MemoryReturn never(absl::InfiniteDuration(), [this] { ++times_; });
  At(0, {.calls = 1}, never);
  EXPECT_EQ(At(1'000'000, {.calls = 1}, never), 0);
}

}  // namespace
}  // namespace crout::memory_return_test
