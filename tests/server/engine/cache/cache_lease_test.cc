// SPDX-License-Identifier: Apache-2.0

// Tests leases: expiry, extension by use, and removal of the factor.
#include <optional>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/util/clock.h"
#include "server/engine/error.h"
#include "tests/server/engine/cache/cache_fixture.h"
#include "tests/support/status_matchers.h"

namespace crout::cache_lease_test {
namespace {

// Compares with a tolerance, because the clock advances while the test runs.
MATCHER_P(IsAbout, time, "") { return absl::AbsDuration(arg - time) < absl::Minutes(1); }

class CacheLeaseTest : public CacheTest {
 protected:
  CacheLeaseTest() { Start(/*device_units=*/8, /*host_units=*/8); }

  Handle PutFor(char fill, absl::Duration lease, absl::Duration life = absl::InfiniteDuration()) {
    return Put(fill, kUnit, 0,
               {.tenant = "", .name = "", .request_id = "", .lease = lease, .life = life});
  }
  absl::Time EndOf(const Handle& handle) {
    return cache_->Describe(kTenant, handle)->lease_expire_time;
  }
};

TEST_F(CacheLeaseTest, EndsAtItsExpiryAndCanBeRenewed) {
  const Handle shorter = PutFor('a', absl::Hours(1));
  const Handle renewed = PutFor('b', absl::Hours(1));
  Advance(absl::Minutes(59));
  EXPECT_EQ(ReasonGone(shorter), "");
  ASSERT_OK_AND_ASSIGN(const FactorInfo info, cache_->Renew(kTenant, renewed, absl::Hours(2)));
  EXPECT_THAT(info.lease_expire_time, IsAbout(WallNow() + absl::Hours(2)));
  Advance(absl::Minutes(1));
  EXPECT_EQ(ReasonGone(shorter), kReasonHandleExpired);
  EXPECT_FALSE(cache_->Renew(kTenant, shorter, absl::Hours(2)).ok());
  EXPECT_FALSE(Touch(shorter).ok());
  EXPECT_EQ(Metric("crout_cache_misses_total{reason=\"expired\"}"), 1);
  EXPECT_EQ(DeviceUnits(), 2u);
  Sweep();
  EXPECT_EQ(DeviceUnits(), 1u);
  EXPECT_EQ(ReasonGone(shorter), kReasonHandleExpired);
  EXPECT_EQ(ReasonGone(shorter, "bob"), kReasonHandleUnknown);
  EXPECT_EQ(Metric("crout_cache_evictions_total{reason=\"lease\",tier=\"device\"}"), 1);
  EXPECT_OK(Touch(renewed));
}

TEST_F(CacheLeaseTest, ARenewalCanBeLimitedToLongerLeases) {
  const Handle handle = PutFor('a', absl::Hours(3));
  const auto lengthen = [&](absl::Duration lease) {
    EXPECT_OK(cache_->Renew(kTenant, handle, lease, Renewal::kLengthen));
    return EndOf(handle) - WallNow();
  };
  const auto is_about = [](absl::Duration lease) {
    return ::testing::AllOf(::testing::Le(lease), ::testing::Gt(lease - absl::Minutes(1)));
  };
  EXPECT_THAT(lengthen(absl::Seconds(1)), is_about(absl::Hours(3)));
  Advance(absl::Hours(2));
  EXPECT_THAT(lengthen(absl::Hours(2)), is_about(absl::Hours(2))) << "it had one left";
  ASSERT_OK(Touch(handle));
  EXPECT_THAT(EndOf(handle) - WallNow(), is_about(absl::Hours(3))) << "its length is as it was";
  EXPECT_THAT(lengthen(absl::Hours(4)), is_about(absl::Hours(4)));
}

TEST_F(CacheLeaseTest, EveryUseExtendsTheLeaseByItsLength) {
  const Handle handle = PutFor('a', absl::Hours(3));
  for (int i = 0; i < 10; ++i) {
    Advance(absl::Hours(2));
    Sweep();
    ASSERT_OK(Touch(handle)) << "use " << i;
    EXPECT_THAT(EndOf(handle), IsAbout(WallNow() + absl::Hours(3)));
  }
  ASSERT_OK(cache_->Renew(kTenant, handle, absl::Hours(5)));
  Advance(absl::Hours(4));
  ASSERT_OK(Touch(handle));
  EXPECT_THAT(EndOf(handle), IsAbout(WallNow() + absl::Hours(5)))
      << "by the length that it has now";
  Advance(absl::Hours(5));
  EXPECT_EQ(ReasonGone(handle), kReasonHandleExpired);
}

TEST_F(CacheLeaseTest, DescribingAndListingDoNotExtendTheLease) {
  const Handle handle = PutFor('a', absl::Hours(3));
  const absl::Time end = EndOf(handle);
  Advance(absl::Hours(2));
  int64_t next = 0;
  cache_->List(kTenant, "", 0, 10, &next);
  EXPECT_EQ(EndOf(handle), end);
}

TEST_F(CacheLeaseTest, StartsAtTheEndOfAUseAndDoesNotEndDuringIt) {
  const Handle handle = PutFor('a', absl::Hours(3));
  {
    ASSERT_OK_AND_ASSIGN(FactorCache::Pin pin, cache_->Acquire(kTenant, handle));
    Advance(absl::Hours(10));
    Sweep();
    EXPECT_OK(Touch(handle)) << "others find it meanwhile";
    Advance(absl::Hours(10));
    Sweep();
    EXPECT_THAT(EndOf(handle), IsAbout(WallNow() + absl::Hours(3)));
  }
  EXPECT_THAT(EndOf(handle), IsAbout(WallNow() + absl::Hours(3)));
  Advance(absl::Hours(3));
  Sweep();
  EXPECT_EQ(ReasonGone(handle), kReasonHandleExpired);
  EXPECT_EQ(DeviceUnits(), 0u);
}

TEST_F(CacheLeaseTest, AUseOfAReplacedVersionExtendsTheLease) {
  const Handle handle = PutFor('a', absl::Hours(3));
  std::optional<FactorCache::Pin> old_version;
  {
    ASSERT_OK_AND_ASSIGN(FactorCache::Pin pin, cache_->Acquire(kTenant, handle));
    old_version = std::move(pin);
  }
  ASSERT_OK_AND_ASSIGN(NewFactor next, Make('b'));
  ASSERT_OK(cache_->Replace(kTenant, handle, std::move(next)));
  Advance(absl::Hours(10));
  Sweep();
  old_version.reset();
  EXPECT_THAT(EndOf(handle), IsAbout(WallNow() + absl::Hours(3)));
}

TEST_F(CacheLeaseTest, AReleaseEndsTheLeaseOfAFactorInUse) {
  const Handle handle = PutFor('a', absl::Hours(3));
  ASSERT_OK_AND_ASSIGN(FactorCache::Pin pin, cache_->Acquire(kTenant, handle));
  ASSERT_OK(cache_->Release(kTenant, handle));
  EXPECT_EQ(ReasonGone(handle), kReasonHandleReleased);
}

TEST_F(CacheLeaseTest, TheMaximumLifeEndsDespiteUses) {
  const Handle handle = PutFor('a', absl::Hours(6), absl::Hours(10));
  const absl::Time life_end = cache_->Describe(kTenant, handle)->create_time + absl::Hours(10);
  Advance(absl::Hours(5));
  ASSERT_OK(Touch(handle));
  EXPECT_EQ(EndOf(handle), life_end) << "and no later";
  ASSERT_OK_AND_ASSIGN(const FactorInfo info, cache_->Renew(kTenant, handle, absl::Hours(24)));
  EXPECT_EQ(info.lease_expire_time, life_end);
  ASSERT_OK_AND_ASSIGN(NewFactor next, Make('b'));
  ASSERT_OK(cache_->Replace(kTenant, handle, std::move(next)));
  EXPECT_EQ(EndOf(handle), life_end) << "of the handle, not of a version";
  {
    ASSERT_OK_AND_ASSIGN(FactorCache::Pin pin, cache_->Acquire(kTenant, handle));
    Advance(absl::Hours(5));
    Sweep();
    EXPECT_EQ(ReasonGone(handle), kReasonHandleExpired);
    ASSERT_OK_AND_ASSIGN(const char fill, UsePinned(pin));
    EXPECT_EQ(fill, 'b') << "what uses it finishes";
  }
  EXPECT_EQ(DeviceUnits(), 0u);
}

TEST_F(CacheLeaseTest, AMaximumLifeShorterThanTheLeaseEndsFirst) {
  const Handle handle = PutFor('a', absl::Hours(100), absl::Hours(10));
  EXPECT_THAT(EndOf(handle), IsAbout(WallNow() + absl::Hours(10)));
  Advance(absl::Hours(10));
  EXPECT_EQ(ReasonGone(handle), kReasonHandleExpired);
}

}  // namespace
}  // namespace crout::cache_lease_test
