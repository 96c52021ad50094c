// SPDX-License-Identifier: Apache-2.0

// Tests which tenant's factors are evicted for the memory that a tenant needs.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/error.h"
#include "tests/server/engine/cache/cache_fixture.h"
#include "tests/support/status_matchers.h"

namespace crout::eviction_shares_test {
namespace {

using ::testing::Optional;

class EvictionSharesTest : public CacheTest {
 protected:
  // Host memory alone: a factor that is evicted there is dropped.
  void StartOnHost(size_t units) { Start({DeviceKind::kHost}, /*device_units=*/0, units); }

  Handle PutFor(const std::string& tenant, bool pin = false) {
    InsertOptions options;
    options.tenant = tenant;
    options.pin = pin;
    return Put('x', kUnit, 0, options);
  }
  std::vector<Handle> PutMany(const std::string& tenant, int count) {
    std::vector<Handle> handles;
    for (int i = 0; i < count; ++i) handles.push_back(PutFor(tenant));
    return handles;
  }
  // Numbers of factors of the tenants a, b and c.
  std::vector<int64_t> Factors() {
    return {loads_.Of("a").factors, loads_.Of("b").factors, loads_.Of("c").factors};
  }
  int Living(const std::string& tenant, const std::vector<Handle>& handles) {
    int living = 0;
    for (const Handle& handle : handles) living += cache_->Describe(tenant, handle).ok() ? 1 : 0;
    return living;
  }
};

TEST_F(EvictionSharesTest, ALoneTenantUsesAllMemory) {
  StartOnHost(8);
  const std::vector<Handle> handles = PutMany("a", 8);
  EXPECT_EQ(Living("a", handles), 8);
  PutFor("a");
  EXPECT_EQ(ReasonGone(handles[0], "a"), kReasonHandleEvicted);
  EXPECT_EQ(Living("a", handles), 7);
}

TEST_F(EvictionSharesTest, ABurstLeavesTheShareOfAnotherTenantAlone) {
  StartOnHost(8);
  const std::vector<Handle> a = PutMany("a", 4);
  const std::vector<Handle> b = PutMany("b", 40);
  EXPECT_EQ(Living("a", a), 4);
  EXPECT_EQ(Living("b", {b.end() - 4, b.end()}), 4) << "of the tenant's own, the oldest went";
}

TEST_F(EvictionSharesTest, UnusedMemoryIsLentUntilItsTenantNeedsIt) {
  StartOnHost(8);
  PutMany("a", 1);
  const std::vector<Handle> b = PutMany("b", 40);
  EXPECT_EQ(Factors(), (std::vector<int64_t>{1, 7, 0}));
  ASSERT_OK(cache_->Acquire("b", b[33]));  // the oldest is now the most recently used
  for (int64_t i = 2; i <= 4; ++i) {
    PutFor("a");
    EXPECT_EQ(Factors(), (std::vector<int64_t>{i, 8 - i, 0}));
  }
  PutFor("a");
  EXPECT_EQ(Factors(), (std::vector<int64_t>{4, 4, 0}));
  EXPECT_EQ(ReasonGone(b[33], "b"), "") << "least recently used first";
}

TEST_F(EvictionSharesTest, AThirdTenantShrinksTheSharesGradually) {
  StartOnHost(12);
  PutMany("a", 12);
  PutMany("b", 6);
  EXPECT_EQ(Factors(), (std::vector<int64_t>{6, 6, 0}));
  const std::vector<std::vector<int64_t>> steps = {
      {6, 5, 1}, {5, 5, 2}, {5, 4, 3}, {4, 4, 4}, {4, 4, 4}};
  for (const std::vector<int64_t>& step : steps) {
    PutFor("c");
    EXPECT_EQ(Factors(), step);
  }
}

TEST_F(EvictionSharesTest, TheTenantFurthestAboveItsShareGoesFirst) {
  StartOnHost(12);
  PutMany("a", 7);
  PutMany("b", 5);
  PutMany("c", 2);
  EXPECT_EQ(Factors(), (std::vector<int64_t>{5, 5, 2}));
}

TEST_F(EvictionSharesTest, PinnedFactorsCount) {
  StartOnHost(8);
  for (int i = 0; i < 3; ++i) PutFor("a", /*pin=*/true);
  const std::vector<Handle> a = PutMany("a", 2);
  PutMany("b", 3);
  PutFor("b");
  EXPECT_EQ(Factors(), (std::vector<int64_t>{4, 4, 0})) << "a was above its share";
  EXPECT_EQ(ReasonGone(a[0], "a"), kReasonHandleEvicted);
  PutFor("b");
  EXPECT_EQ(Factors(), (std::vector<int64_t>{4, 4, 0}));
  EXPECT_EQ(ReasonGone(a[1], "a"), "");
}

TEST_F(EvictionSharesTest, AFactorInUseCounts) {
  StartOnHost(4);
  const std::vector<Handle> a = PutMany("a", 2);
  ASSERT_OK_AND_ASSIGN(const FactorCache::Pin pin, cache_->Acquire("a", a[1]));
  const std::vector<Handle> b = PutMany("b", 3);
  EXPECT_EQ(Living("a", a), 2);
  EXPECT_EQ(Living("b", b), 2);
}

TEST_F(EvictionSharesTest, ARequestBeyondTheShareIsRefusedAndEvictsNothing) {
  StartOnHost(8);
  PutMany("a", 4);
  PutMany("b", 4);
  EXPECT_EQ(cache_->EvictableBytes(slot(), "b"), 4 * kUnit) << "its own";
  const absl::Status refused = cache_->ReserveOnDevice(slot(), 5 * kUnit, "b").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(ReasonOf(refused), Optional(std::string(kReasonMemoryExhausted)));
  EXPECT_TRUE(RetryAfterOf(refused).has_value());
  EXPECT_EQ(cache_->ReserveOnHost(5 * kUnit, "b").status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Factors(), (std::vector<int64_t>{4, 4, 0}));
  EXPECT_OK(cache_->ReserveOnDevice(slot(), 4 * kUnit, "b"));
  EXPECT_EQ(Factors(), (std::vector<int64_t>{4, 0, 0}));
}

TEST_F(EvictionSharesTest, ATenantWithoutFactorsGetsItsShare) {
  StartOnHost(9);
  PutMany("a", 5);
  PutMany("b", 4);
  EXPECT_EQ(cache_->EvictableBytes(slot(), "c"), 3 * kUnit);
  EXPECT_OK(cache_->ReserveOnDevice(slot(), 3 * kUnit, "c"));
  EXPECT_EQ(Factors(), (std::vector<int64_t>{3, 3, 0}));
}

TEST_F(EvictionSharesTest, EachMemoryHasItsOwnShares) {
  Start(/*device_units=*/4, /*host_units=*/4);
  const std::vector<Handle> a = PutMany("a", 2);
  const std::vector<Handle> b = PutMany("b", 6);
  EXPECT_EQ(DeviceUnits(), 4u);
  for (const Handle& handle : a) EXPECT_EQ(cache_->Describe("a", handle)->tier, Tier::kDevice);
  EXPECT_EQ(Living("b", b), 6) << "two on the device, and host memory has no other tenant";
  PutFor("a");  // moves its oldest to host memory, where b exceeds its share
  EXPECT_EQ(cache_->Describe("a", a[0])->tier, Tier::kHost);
  EXPECT_EQ(ReasonGone(b[0], "b"), kReasonHandleEvicted);
  EXPECT_EQ(Living("b", b), 5);
}

}  // namespace
}  // namespace crout::eviction_shares_test
