// SPDX-License-Identifier: Apache-2.0

// Tests the accounting of the calls of a connection from their arrival until their memory is
// charged.
#include "server/net/connection_calls.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "kernels/util/clock.h"
#include "tests/support/timing/failpoints.h"

namespace crout::testing::connection_calls_test {
namespace {

using Entries = std::vector<ConnectionCalls::Entry>;

class ConnectionCallsTest : public ::testing::Test {
 protected:
  ConnectionCallsTest() {
    calls_.SetDisconnect([this](const std::string& peer) { closed_.push_back(peer); });
  }

  // Lets calls arrive until one is refused or `most` are accepted. Returns the number of accepted
  // calls.
  int Admit(uint64_t connection, int most) {
    int count = 0;
    while (count < most && calls_.Admit(connection)) ++count;
    return count;
  }
  Entries Begin(uint64_t connection, int count) {
    Entries entries;
    for (int i = 0; i < count; ++i) {
      entries.push_back(calls_.Begin(connection, "peer " + std::to_string(connection)));
    }
    return entries;
  }
  // Begins a call that its client resets before the server has read the header.
  void Abandon(uint64_t connection) {
    ASSERT_TRUE(calls_.Admit(connection));
    calls_.Begin(connection, "peer " + std::to_string(connection)).ClientLeft();
  }
  // Begins a call that is charged and whose header is read. If `cancelled`, the client then cancels
  // it.
  void Serve(uint64_t connection, bool cancelled = false) {
    ASSERT_TRUE(calls_.Admit(connection));
    auto entry = calls_.Begin(connection, "peer " + std::to_string(connection));
    entry.Charged();
    entry.HeaderRead();
    if (cancelled) entry.ClientLeft();
  }

  Failpoints clock_;
  std::vector<std::string> closed_;
  ConnectionCalls calls_{{.calls = 1000, .share = 0.9}};
};

constexpr int kMax = ConnectionCalls::kMaxPendingPerConnection;

TEST_F(ConnectionCallsTest, PendingCallsOfAConnectionAreLimited) {
  const uint64_t one = calls_.NewConnection();
  const uint64_t other = calls_.NewConnection();
  EXPECT_EQ(Admit(one, 10000), kMax);
  EXPECT_EQ(Admit(other, 10000), kMax);
  Entries begun = Begin(one, kMax);
  EXPECT_FALSE(calls_.Admit(one)) << "those that began are not charged yet";
  for (int i = 0; i < 5; ++i) begun[i].Charged();
  begun.erase(begun.begin() + 5, begun.begin() + 8);
  EXPECT_EQ(Admit(one, 10000), 8);
}

TEST_F(ConnectionCallsTest, PendingCallsOfAllConnectionsAreLimited) {
  constexpr int kFull = ConnectionCalls::kMaxPending / kMax + 1;
  for (int i = 0; i < kFull; ++i) Admit(calls_.NewConnection(), 10000);
  EXPECT_EQ(Admit(calls_.NewConnection(), 10000), ConnectionCalls::kAlwaysPending)
      << "a connection without pending calls is always served";
}

TEST_F(ConnectionCallsTest, AConnectionOfAbandonedCallsIsClosed) {
  const uint64_t one = calls_.NewConnection();
  for (int i = 0; i < 1000; ++i) Abandon(one);
  EXPECT_TRUE(closed_.empty());
  Abandon(one);
  EXPECT_EQ(closed_, std::vector<std::string>{"peer 1"});
  EXPECT_FALSE(calls_.Admit(one));
  EXPECT_TRUE(calls_.Admit(calls_.NewConnection()));
}

TEST_F(ConnectionCallsTest, CallsBeyondTheLimitOfAConnectionCountAsAbandoned) {
  const uint64_t one = calls_.NewConnection();
  Admit(one, kMax);
  const Entries begun = Begin(one, 1);
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(calls_.Admit(one));
  EXPECT_TRUE(closed_.empty());
  EXPECT_FALSE(calls_.Admit(one));
  EXPECT_EQ(closed_.size(), 1u);
}

TEST_F(ConnectionCallsTest, AbandonedCallsBelowTheRateLimitAreAccepted) {
  const uint64_t one = calls_.NewConnection();
  for (int i = 0; i < 900; ++i) Abandon(one);
  clock_.Advance(absl::Seconds(10));
  for (int i = 0; i < 900; ++i) Abandon(one);
  EXPECT_TRUE(closed_.empty());
}

// Many clients share the connection of a proxy. They cancel most calls at once, and a few while the
// server works on them.
TEST_F(ConnectionCallsTest, AConnectionWithServedCallsStaysOpen) {
  const uint64_t proxy = calls_.NewConnection();
  for (int i = 0; i < 20000; ++i) {
    if (i % 8 == 0) {
      Serve(proxy, /*cancelled=*/i % 16 == 0);
    } else {
      Abandon(proxy);
    }
  }
  EXPECT_TRUE(closed_.empty());
}

TEST_F(ConnectionCallsTest, RefusedCallsAreNotAbandoned) {
  const uint64_t one = calls_.NewConnection();
  for (int i = 0; i < 5000; ++i) {
    ASSERT_TRUE(calls_.Admit(one));
    Begin(one, 1);
  }
  EXPECT_TRUE(closed_.empty());
}

TEST_F(ConnectionCallsTest, AnIdleConnectionIsRemoved) {
  const uint64_t quiet = calls_.NewConnection();
  const uint64_t pending = calls_.NewConnection();
  for (int i = 0; i < 1000; ++i) Abandon(quiet);
  Admit(pending, kMax);
  clock_.Advance(absl::Minutes(1));
  calls_.Housekeep(SteadyNow());
  Abandon(quiet);
  EXPECT_TRUE(closed_.empty());
  EXPECT_FALSE(calls_.Admit(pending));
}

TEST_F(ConnectionCallsTest, NoConnectionIsClosedWithoutALimit) {
  ConnectionCalls calls({.calls = 0});
  calls.SetDisconnect([](const std::string&) { FAIL(); });
  const uint64_t one = calls.NewConnection();
  for (int i = 0; i < 5000; ++i) {
    ASSERT_TRUE(calls.Admit(one));
    calls.Begin(one, "peer").ClientLeft();
  }
}

}  // namespace
}  // namespace crout::testing::connection_calls_test
