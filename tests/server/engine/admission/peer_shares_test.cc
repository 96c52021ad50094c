// SPDX-License-Identifier: Apache-2.0

// Tests the shares of a memory budget that peers hold.
#include "server/engine/admission/peer_shares.h"

#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace crout::peer_shares_test {
namespace {

// A call that holds the bytes given to Begin() until it is destroyed, even after Preempt().
class FakeCall final : public PeerShares::Holder, public std::enable_shared_from_this<FakeCall> {
 public:
  bool Begin(PeerShares& shares, std::string_view peer, size_t bytes) {
    auto charge = shares.TryCharge(peer, bytes, weak_from_this());
    if (charge) charge_ = *std::move(charge);
    return charge.has_value();
  }
  void Preempt() override { gives_way = true; }

  bool gives_way = false;

 private:
  PeerShares::Charge charge_;
};

class PeerSharesTest : public ::testing::Test {
 protected:
  using Calls = std::vector<std::shared_ptr<FakeCall>>;

  // Begins calls of one byte until one is refused or `most` are admitted. Returns the admitted
  // calls.
  Calls Fill(std::string_view peer, size_t most = 1000) {
    Calls calls;
    while (calls.size() < most) {
      auto call = std::make_shared<FakeCall>();
      if (!call->Begin(shares_, peer, 1)) break;
      calls.push_back(std::move(call));
    }
    return calls;
  }
  static size_t PreemptedStatus(const Calls& calls) {
    size_t count = 0;
    for (const auto& call : calls) count += call->gives_way ? 1 : 0;
    return count;
  }

  MemoryBudget budget_{100};
  PeerShares shares_{budget_};
};

TEST_F(PeerSharesTest, ASinglePeerMayUseAllMemory) {
  const Calls calls = Fill("first");
  EXPECT_EQ(calls.size(), 100u);
  EXPECT_EQ(PreemptedStatus(calls), 0u);
}

TEST_F(PeerSharesTest, TheNewestCallsBeyondAQuarterArePreempted) {
  const Calls first = Fill("first");
  const Calls second = Fill("second");
  EXPECT_EQ(second.size(), 25u) << "a quarter, and no more for another's calls";
  EXPECT_EQ(PreemptedStatus(second), 0u);
  ASSERT_EQ(PreemptedStatus(first), 25u);
  for (size_t i = 75; i < 100; ++i) EXPECT_TRUE(first[i]->gives_way) << i;
}

TEST_F(PeerSharesTest, EndedCallsStayChargedUntilTheyAreGone) {
  Calls first = Fill("first");
  const Calls second = Fill("second");
  // Preempted calls still hold a quarter of the budget, so no further call is preempted.
  EXPECT_EQ(Fill("third").size(), 0u);
  first.resize(90);
  const Calls third = Fill("third");
  EXPECT_EQ(third.size(), 10u);
  EXPECT_EQ(PreemptedStatus(first), 25u) << "15 that were there, and 10 for the third peer";
  first.clear();
  EXPECT_EQ(budget_.reserved(), 35u);
}

TEST_F(PeerSharesTest, APeerWithinItsQuarterIsNeverPreempted) {
  const Calls calls[] = {Fill("a", 25), Fill("b", 25), Fill("c", 25), Fill("d", 25)};
  EXPECT_EQ(Fill("e").size(), 0u);
  for (const Calls& each : calls) EXPECT_EQ(PreemptedStatus(each), 0u);
}

TEST_F(PeerSharesTest, TheLargestPeerIsPreempted) {
  const Calls large = Fill("large", 60);
  const Calls small = Fill("small", 40);
  EXPECT_EQ(Fill("other", 10).size(), 10u);
  EXPECT_EQ(PreemptedStatus(large), 10u);
  EXPECT_EQ(PreemptedStatus(small), 0u);
}

TEST_F(PeerSharesTest, AnExemptPeerIsNeverPreempted) {
  const Calls proxy = Fill("", 90);
  const Calls other = Fill("other");
  EXPECT_EQ(other.size(), 10u);
  EXPECT_EQ(PreemptedStatus(proxy), 0u);
}

TEST_F(PeerSharesTest, AnExemptPeerIsServedWhenAnotherHoldsTooMuch) {
  const Calls first = Fill("first");
  const Calls proxy = Fill("", 25);
  EXPECT_EQ(proxy.size(), 25u);
  EXPECT_EQ(PreemptedStatus(first), 25u);
}

TEST_F(PeerSharesTest, AMovedChargeStaysCharged) {
  auto charge = shares_.TryCharge("peer", 2, {});
  ASSERT_TRUE(charge.has_value());
  PeerShares::Charge moved = *std::move(charge);
  charge.reset();
  EXPECT_EQ(budget_.reserved(), 2u);
  moved = PeerShares::Charge();
  EXPECT_EQ(budget_.reserved(), 0u);
}

}  // namespace
}  // namespace crout::peer_shares_test
