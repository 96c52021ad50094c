// SPDX-License-Identifier: Apache-2.0

#include "kernels/util/poll_pause.h"

#include <chrono>

#include "gtest/gtest.h"

namespace crout::poll_pause_test {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

// If the wait for a job of some microseconds slept, it would take many times as long as the job.
TEST(PollPauseTest, DoesNotSleepDuringShortJobs) {
  EXPECT_EQ(PollPause(nanoseconds(0)), nanoseconds(0));
  EXPECT_EQ(PollPause(microseconds(199)), nanoseconds(0));
}

TEST(PollPauseTest, SleepsAtMostAQuarterOfTheElapsedTime) {
  for (nanoseconds waited = microseconds(200); waited < std::chrono::seconds(100); waited *= 2) {
    EXPECT_GT(PollPause(waited), nanoseconds(0)) << waited.count();
    EXPECT_LE(PollPause(waited), waited / 4) << waited.count();
    EXPECT_LE(PollPause(waited), microseconds(200)) << waited.count();
  }
  EXPECT_EQ(PollPause(std::chrono::hours(1)), microseconds(200));
}

}  // namespace
}  // namespace crout::poll_pause_test
