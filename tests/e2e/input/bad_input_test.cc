// SPDX-License-Identifier: Apache-2.0

// Tests truncated, oversized, mismatched and inconsistent requests. Each gets its documented
// status, and the daemon then serves other calls and has freed all resources.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/e2e/harness/daemon.h"
#include "tests/e2e/input/bad_input.h"
#include "tests/support/status_matchers.h"

namespace crout::e2e::bad_input::bad_input_test {
namespace {

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (const auto add : {AddFactorizes, AddSolves, AddRefactorizes, AddOthers}) add(&cases);
  return cases;
}

TEST(BadInputTest, EachGetsItsStatusAndTheDaemonServesOn) {
  Fixture fixture;
  const auto client = fixture.daemon().NewClient();
  fixture.daemon().AwaitRest();
  Holdings before = HoldingsOf(*client);
  ASSERT_EQ(before.cached_factors, 5);
  for (const Case& bad : AllCases()) {
    SCOPED_TRACE(bad.name);
    const absl::Status status = bad.call(fixture);
    EXPECT_THAT(status, crout::testing::FailsWith(bad.code, bad.text));
    EXPECT_EQ(Reason(status).empty(), bad.by_grpc) << status;
    // The daemon still serves calls, and a solve with the factor is still correct.
    BufferSink x;
    const std::vector<double> b(kOrder, 3.0);
    const auto solved =
        client->Solve(fixture.good, MatrixSource::Dense(absl::MakeConstSpan(b), kOrder, 1), {}, &x);
    ASSERT_THAT(solved, crout::testing::IsOk());
    EXPECT_EQ(solved->factor_version, 1);
    EXPECT_THAT(x.values<double>(), ::testing::Each(3.0));
    EXPECT_TRUE(Eventually([&] { return HoldingsOf(*client) == before; }))
        << before << " became " << HoldingsOf(*client);
    before = HoldingsOf(*client);  // reports each leak once
  }
  EXPECT_TRUE(fixture.daemon().process().running());
}

}  // namespace
}  // namespace crout::e2e::bad_input::bad_input_test
