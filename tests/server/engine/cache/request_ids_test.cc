// SPDX-License-Identifier: Apache-2.0

// Tests request IDs: how calls claim them, how claims end, and the calls that wait for a claim.
#include "server/engine/cache/request_ids.h"

#include <memory>
#include <string_view>

#include "gtest/gtest.h"

namespace crout::request_ids_test {
namespace {

constexpr std::string_view kTenant = "tenant";
constexpr std::string_view kId = "step-17";

class Waiter : public RequestWaiter {
 public:
  void OnClaimEnded() noexcept override { ++ended; }
  int ended = 0;
};

TEST(RequestIdsTest, AnIdIsClaimedOnce) {
  RequestIds ids;
  EXPECT_EQ(ids.Claim(kTenant, kId).before, RequestIds::State::kFree);
  EXPECT_EQ(ids.Claim(kTenant, kId).before, RequestIds::State::kClaimed);
  EXPECT_EQ(ids.Claim("another tenant", kId).before, RequestIds::State::kFree);
  ids.Abandon(kTenant, kId);
  EXPECT_EQ(ids.Claim(kTenant, kId).before, RequestIds::State::kFree);
}

TEST(RequestIdsTest, ACompletedIdHasItsFactorUntilTheFactorIsGone) {
  RequestIds ids;
  const Handle factor = Handle::Random();
  ids.Claim(kTenant, kId);
  ids.Complete(RequestIds::Node(kTenant, kId), factor);
  ids.Abandon(kTenant, kId);  // no effect, because the claim has ended
  const RequestIds::Found found = ids.Claim(kTenant, kId);
  EXPECT_EQ(found.before, RequestIds::State::kHasFactor);
  EXPECT_EQ(found.factor, factor);
  ids.Remove(kTenant, kId, Handle::Random());
  EXPECT_EQ(ids.Claim(kTenant, kId).before, RequestIds::State::kHasFactor);
  ids.Remove(kTenant, kId, factor);
  EXPECT_EQ(ids.Claim(kTenant, kId).before, RequestIds::State::kFree);
}

TEST(RequestIdsTest, OneCallReclaimsTheIdOfAFactorThatIsGone) {
  RequestIds ids;
  const Handle factor = Handle::Random();
  ids.Complete(RequestIds::Node(kTenant, kId), factor);
  EXPECT_TRUE(ids.Reclaim(kTenant, kId, factor));
  EXPECT_FALSE(ids.Reclaim(kTenant, kId, factor));
  EXPECT_EQ(ids.Claim(kTenant, kId).before, RequestIds::State::kClaimed);
}

TEST(RequestIdsTest, WaitersAreNotifiedOnceWhenTheClaimEnds) {
  RequestIds ids;
  const auto first = std::make_shared<Waiter>();
  const auto second = std::make_shared<Waiter>();
  EXPECT_FALSE(ids.Await(kTenant, kId, first));
  ids.Claim(kTenant, kId);
  EXPECT_TRUE(ids.Await(kTenant, kId, first));
  EXPECT_TRUE(ids.Await(kTenant, kId, second));
  EXPECT_TRUE(ids.IsAwaited(kTenant, kId));
  ids.StopAwaiting(kTenant, kId, second.get());
  {
    const RequestIds::EndedClaim ended =
        ids.Complete(RequestIds::Node(kTenant, kId), Handle::Random());
    EXPECT_EQ(first->ended, 0);
  }
  EXPECT_EQ(first->ended, 1);
  EXPECT_EQ(second->ended, 0);
  EXPECT_FALSE(ids.IsAwaited(kTenant, kId));
}

TEST(RequestIdsTest, ADestroyedWaiterIsSkipped) {
  RequestIds ids;
  ids.Claim(kTenant, kId);
  EXPECT_TRUE(ids.Await(kTenant, kId, std::make_shared<Waiter>()));
  ids.Abandon(kTenant, kId);
  EXPECT_EQ(ids.Claim(kTenant, kId).before, RequestIds::State::kFree);
}

TEST(RequestIdsTest, AFactorWithoutAnIdIsNotStored) {
  RequestIds ids;
  ids.Complete(RequestIds::Node(kTenant, ""), Handle::Random());
  EXPECT_EQ(ids.Claim(kTenant, "").before, RequestIds::State::kFree);
}

}  // namespace
}  // namespace crout::request_ids_test
