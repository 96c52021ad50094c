// SPDX-License-Identifier: Apache-2.0

// Tests the counts of factors, bytes and calls per tenant.
#include "server/engine/cache/tenant_loads.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/engine/cache/cache_fixture.h"
#include "tests/support/status_matchers.h"

namespace crout::tenant_loads_test {
namespace {

using ::testing::ElementsAre;

int64_t OnDevice(const TenantLoad& load) { return load.bytes[static_cast<size_t>(Tier::kDevice)]; }
int64_t OnHost(const TenantLoad& load) { return load.bytes[static_cast<size_t>(Tier::kHost)]; }

class CacheTenantLoadsTest : public CacheTest {
 protected:
  Handle PutFor(const std::string& tenant, char fill, size_t units = 1) {
    return Put(fill, units * kUnit, 0,
               {.tenant = tenant, .name = "", .request_id = "", .lease = absl::Hours(1)});
  }
  std::vector<std::string> Names(size_t count = 10) const {
    std::vector<std::string> names;
    for (const TenantLoad& load : loads_.Largest(count)) names.push_back(load.tenant);
    return names;
  }
};

constexpr auto kOne = static_cast<int64_t>(size_t{32} << 10);

TEST_F(CacheTenantLoadsTest, CountsFactorsByTier) {
  Start(/*device_units=*/2, /*host_units=*/4);
  const Handle first = PutFor("a", 'a');
  PutFor("b", 'b');
  EXPECT_EQ(loads_.Of("a").factors, 1);
  EXPECT_EQ(OnDevice(loads_.Of("a")), kOne);
  PutFor("b", 'c');
  EXPECT_EQ(loads_.Of("b").factors, 2);
  EXPECT_EQ(OnDevice(loads_.Of("b")), kOne);
  EXPECT_EQ(OnHost(loads_.Of("b")), kOne) << "the second factor moved the first to host memory";
  EXPECT_EQ(OnDevice(loads_.Of("a")), kOne);
  EXPECT_THAT(Names(), ElementsAre("b", "a"));
  ASSERT_OK(cache_->Release("a", first));
  EXPECT_THAT(Names(), ElementsAre("b"));
  EXPECT_EQ(loads_.Of("a").factors, 0);
  Advance(absl::Hours(2));
  Sweep();
  EXPECT_THAT(Names(), ElementsAre());
}

TEST_F(CacheTenantLoadsTest, AReplacedFactorCountsOnceWithItsOwnBytes) {
  Start(/*device_units=*/8, /*host_units=*/4);
  const Handle handle = PutFor("a", 'a', 2);
  auto next = Make('b', 3 * kUnit);
  ASSERT_OK(next);
  ASSERT_OK(cache_->Replace("a", handle, *std::move(next)));
  EXPECT_EQ(loads_.Of("a").factors, 1);
  EXPECT_EQ(OnDevice(loads_.Of("a")), 3 * kOne);
}

TEST_F(CacheTenantLoadsTest, AnUnlistedPartCountsOnlyItsBytes) {
  Start(/*device_units=*/8, /*host_units=*/4);
  PutFor("a", 'a');
  const Handle part =
      Put('b', 2 * kUnit, 0,
          {.tenant = "a", .name = "", .request_id = "", .lease = absl::Hours(1), .listed = false});
  EXPECT_EQ(loads_.Of("a").factors, 1);
  EXPECT_EQ(OnDevice(loads_.Of("a")), 3 * kOne);
  ASSERT_OK(cache_->Release("a", part));
  EXPECT_EQ(loads_.Of("a").factors, 1);
  EXPECT_EQ(OnDevice(loads_.Of("a")), kOne);
}

TEST_F(CacheTenantLoadsTest, ListsTheLargestFirst) {
  Start(/*device_units=*/512, /*host_units=*/4);
  const TenantLoads::Account call = loads_.OpenCall("zoe");
  for (int i = 0; i < 200; ++i) PutFor(absl::StrCat("t", 1000 + i), 'a');  // several pages
  PutFor("m", 'b', 3);
  EXPECT_EQ(Names(1000).size(), 202u);
  EXPECT_THAT(Names(2), ElementsAre("m", "t1000"));
  EXPECT_EQ(loads_.Largest(1000).back().tenant, "zoe") << "it has calls alone";
  EXPECT_EQ(loads_.Largest(1000).back().calls, 1);
}

TEST(TenantLoadsTest, CallsCountAsLongAsTheyLive) {
  TenantLoads loads;
  {
    TenantLoads::Account moved;
    {
      TenantLoads::Account first = loads.OpenCall("a");
      const TenantLoads::Account second = loads.OpenCall("a");
      const TenantLoads::Account factor = loads.Open("a");
      EXPECT_EQ(loads.Of("a").calls, 2);
      moved = std::move(first);
      EXPECT_EQ(loads.Of("a").calls, 2);
    }
    EXPECT_EQ(loads.Of("a").calls, 1);
  }
  EXPECT_TRUE(loads.Largest(1).empty());
}

TEST(TenantLoadsTest, CountsFromManyThreads) {
  TenantLoads loads;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 1000; ++k) {
        TenantLoads::Account account = loads.OpenCall(absl::StrCat("t", (i + k) % 3));
        account.AddFactors(1);
        EXPECT_LE(loads.Largest(2).size(), 2u);
        account.AddFactors(-1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(loads.Largest(1).empty());
}

}  // namespace
}  // namespace crout::tenant_loads_test
