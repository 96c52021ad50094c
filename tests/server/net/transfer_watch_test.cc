// SPDX-License-Identifier: Apache-2.0

#include "server/net/transfer_watch.h"

#include <limits>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace crout::testing::transfer_watch_test {
namespace {

using Fault = TransferWatch::Fault;

class TransferWatchTest : public ::testing::Test {
 protected:
  TransferWatch::Clock::time_point At(double seconds) const {
    return start_ + absl::ToChronoNanoseconds(absl::Seconds(seconds));
  }

  const TransferWatch::Clock::time_point start_ = TransferWatch::Clock::now();
  const TransferLimits limits_{
      .idle_timeout = absl::Seconds(30), .min_rate = 100, .max_time = absl::Minutes(10)};
  TransferWatch watch_{limits_, start_};
};

TEST_F(TransferWatchTest, IdleTimeOfThePeerIsLimited) {
  watch_.StartPeerTurn(At(5));
  watch_.Moved(100'000, At(8));
  EXPECT_EQ(watch_.Check(At(38)), Fault::kNone);
  EXPECT_EQ(watch_.Check(At(38.1)), Fault::kIdle);
}

TEST_F(TransferWatchTest, EmptyMovesCountAsIdle) {
  watch_.StartPeerTurn(At(0));
  watch_.Moved(100'000, At(1));
  watch_.Moved(0, At(30));
  EXPECT_EQ(watch_.Check(At(32)), Fault::kIdle);
}

TEST_F(TransferWatchTest, TheServersTurnIsNotThePeers) {
  watch_.StartPeerTurn(At(0));
  watch_.Moved(100, At(1));
  watch_.EndPeerTurn(At(1));
  EXPECT_EQ(watch_.Check(At(500)), Fault::kNone);
  watch_.StartPeerTurn(At(500));
  EXPECT_EQ(watch_.Check(At(529)), Fault::kNone) << "30 seconds by the peer's clock";
  EXPECT_EQ(watch_.Check(At(531)), Fault::kIdle);
}

TEST_F(TransferWatchTest, TheRateIsAnAverageWithoutTheIdleTimeout) {
  watch_.StartPeerTurn(At(0));
  watch_.Moved(500, At(20));
  EXPECT_EQ(watch_.Check(At(34.9)), Fault::kNone);
  EXPECT_EQ(watch_.Check(At(35.1)), Fault::kSlow);
  watch_.Moved(1500, At(40));
  EXPECT_EQ(watch_.Check(At(49.9)), Fault::kNone);
  EXPECT_EQ(watch_.Check(At(50.1)), Fault::kSlow);
}

TEST_F(TransferWatchTest, TheRateCountsWithoutAnIdleTimeoutToo) {
  TransferWatch watch({.idle_timeout = absl::InfiniteDuration(), .min_rate = 100}, start_);
  watch.StartPeerTurn(At(0));
  EXPECT_EQ(watch.Check(At(30)), Fault::kNone);
  EXPECT_EQ(watch.Check(At(30.1)), Fault::kSlow);
}

TEST_F(TransferWatchTest, TheTotalTimeIsLimited) {
  watch_.EndPeerTurn(At(0));
  EXPECT_EQ(watch_.Check(At(600)), Fault::kNone);
  EXPECT_EQ(watch_.Check(At(601)), Fault::kLong);
}

TEST_F(TransferWatchTest, TheLargestMessageFitsTheMinimumRateAndIdleTimeout) {
  EXPECT_EQ(LargestMessage(limits_), 3000u);
  constexpr auto kAll = std::numeric_limits<size_t>::max();
  EXPECT_EQ(LargestMessage({.idle_timeout = absl::InfiniteDuration()}), kAll);
  EXPECT_EQ(LargestMessage({.min_rate = 0}), kAll);
  EXPECT_EQ(LargestMessage({.idle_timeout = absl::Hours(1), .min_rate = kAll}), kAll);
}

TEST_F(TransferWatchTest, LimitsCanBeAbsent) {
  TransferWatch free({.idle_timeout = absl::InfiniteDuration(),
                      .min_rate = 0,
                      .max_time = absl::InfiniteDuration()},
                     start_);
  free.StartPeerTurn(At(0));
  EXPECT_EQ(free.Check(At(1e9)), Fault::kNone);
}

}  // namespace
}  // namespace crout::testing::transfer_watch_test
