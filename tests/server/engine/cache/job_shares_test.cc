// SPDX-License-Identifier: Apache-2.0

// Tests how the memory of jobs counts in the shares of tenants, and what is kept for a tenant
// within its share.
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/cache/memory_shares.h"
#include "server/engine/error.h"
#include "tests/server/engine/cache/cache_fixture.h"
#include "tests/support/status_matchers.h"

namespace crout::job_shares_test {
namespace {

using ::testing::HasSubstr;

class JobSharesTest : public CacheTest {
 protected:
  // Host memory alone: a factor that is evicted there is dropped.
  void StartOnHost(size_t units) { Start({DeviceKind::kHost}, /*device_units=*/0, units); }

  Handle PutFor(const std::string& tenant) {
    InsertOptions options;
    options.tenant = tenant;
    return Put('x', kUnit, 0, options);
  }
  void PutMany(const std::string& tenant, int count) {
    for (int i = 0; i < count; ++i) PutFor(tenant);
  }
  // Reserves memory of the first device for a job of the tenant.
  absl::StatusOr<Reservation> Job(const std::string& tenant, size_t units) {
    return cache_->ReserveOnDevice(slot(), units * kUnit, tenant);
  }
  // Units reserved for the tenant.
  int64_t Reserved(const std::string& tenant, Tier tier = Tier::kHost) {
    const int64_t bytes = loads_.Of(tenant).reserved[static_cast<size_t>(tier)];
    EXPECT_EQ(bytes % static_cast<int64_t>(kUnit), 0);
    return bytes / static_cast<int64_t>(kUnit);
  }
  int64_t Factors(const std::string& tenant) { return loads_.Of(tenant).factors; }
};

TEST_F(JobSharesTest, AReservationCountsUntilItIsReleased) {
  StartOnHost(8);
  {
    ASSERT_OK_AND_ASSIGN(Reservation job, Job("a", 3));
    EXPECT_EQ(Reserved("a"), 3);
    Reservation part = job.Split(kUnit);
    EXPECT_EQ(Reserved("a"), 3);
    job.Shrink(kUnit);
    EXPECT_EQ(Reserved("a"), 2);
    job.Absorb(std::move(part));
    EXPECT_EQ(Reserved("a"), 2);
    ASSERT_OK_AND_ASSIGN(Reservation more, Job("a", 1));
    EXPECT_EQ(Reserved("a"), 3);
    job.Absorb(std::move(more));
    EXPECT_EQ(Reserved("a"), 3);
  }
  EXPECT_EQ(Reserved("a"), 0);
  EXPECT_EQ(slot().budget->reserved(), 0u);
}

TEST_F(JobSharesTest, AReservationThatMovesIntoAFactorCountsOnce) {
  StartOnHost(8);
  ASSERT_OK_AND_ASSIGN(NewFactor made, Make('x', kUnit, 0, "a"));
  ASSERT_OK_AND_ASSIGN(Reservation workspace, Job("a", 2));
  made.reservation.Absorb(std::move(workspace));
  EXPECT_EQ(Reserved("a"), 3);
  InsertOptions options;
  options.tenant = "a";
  options.lease = absl::Hours(1);
  ASSERT_OK_AND_ASSIGN(const FactorInfo info, cache_->Insert(std::move(made), options));
  EXPECT_EQ(Reserved("a"), 1) << "the factor keeps one unit";
  ASSERT_OK_AND_ASSIGN(NewFactor next, Make('y', 2 * kUnit, 0, "a"));
  ASSERT_OK(cache_->Replace("a", info.handle, std::move(next)));
  EXPECT_EQ(Reserved("a"), 2);
  {
    ASSERT_OK_AND_ASSIGN(const FactorCache::Pin pin, cache_->Acquire("a", info.handle));
    ASSERT_OK(cache_->Release("a", info.handle));
    EXPECT_EQ(Reserved("a"), 2) << "a call uses the released factor";
  }
  EXPECT_EQ(Reserved("a"), 0);
}

TEST_F(JobSharesTest, AFactorThatMovesCountsInTheMemoryItIsIn) {
  Start(/*device_units=*/2, /*host_units=*/4);
  PutMany("a", 3);
  EXPECT_EQ(Reserved("a", Tier::kDevice), 2);
  EXPECT_EQ(Reserved("a", Tier::kHost), 1);
}

TEST_F(JobSharesTest, JobsAreLimitedByTheShareOnceAnotherTenantNeedsItsOwn) {
  StartOnHost(8);
  ASSERT_OK_AND_ASSIGN(const Reservation job, Job("a", 3));
  PutMany("b", 8);
  EXPECT_EQ(Factors("b"), 5) << "b uses the rest of the memory";
  EXPECT_EQ(Job("a", 2).status().code(), absl::StatusCode::kResourceExhausted)
      << "five units exceed the share of a by one, and b exceeds its own by one";
  EXPECT_EQ(Factors("b"), 5);
  ASSERT_OK(Job("a", 1));
  EXPECT_EQ(Factors("b"), 4);
}

TEST_F(JobSharesTest, AJobWithinTheShareEvictsNoFactorOfItsTenant) {
  StartOnHost(8);
  PutMany("b", 2);
  Advance(absl::FromChrono(kKeptFor));  // nothing is kept for jobs of b
  ASSERT_OK_AND_ASSIGN(Reservation burst, Job("a", 6));
  const absl::Status refused = Job("b", 1).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(RetryAfterOf(refused).has_value());
  EXPECT_EQ(Factors("b"), 2);
  burst.Shrink(5 * kUnit);
  EXPECT_OK(Job("b", 1));
  EXPECT_EQ(Factors("b"), 2);
}

TEST_F(JobSharesTest, ALargeJobOfALoneTenantEvictsItsFactors) {
  StartOnHost(8);
  PutMany("a", 6);
  EXPECT_OK(Job("a", 7));
  EXPECT_EQ(Factors("a"), 1);
}

// A burst of jobs of one tenant cannot take the memory that ends a wait of another tenant.
TEST_F(JobSharesTest, ARefusedTenantIsNext) {
  StartOnHost(8);
  ASSERT_OK_AND_ASSIGN(Reservation burst, Job("a", 8));
  EXPECT_FALSE(Job("b", 3).ok());
  for (const size_t held : {7, 6, 5}) {
    burst.Shrink(held * kUnit);  // one job of a has ended, and the next arrives
    const absl::Status next = Job("a", 1).status();
    EXPECT_EQ(next.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(next.message()), HasSubstr("bytes are kept for other tenants"));
    EXPECT_TRUE(RetryAfterOf(next).has_value());
  }
  ASSERT_OK_AND_ASSIGN(const Reservation job, Job("b", 3));
  EXPECT_FALSE(Job("a", 1).ok());
  EXPECT_EQ(Reserved("a"), 5);
  EXPECT_EQ(Reserved("b"), 3);
}

TEST_F(JobSharesTest, MemoryIsKeptForATenantThatUsedItRecently) {
  StartOnHost(8);
  EXPECT_OK(Job("b", 3));
  EXPECT_FALSE(Job("a", 6).ok());
  EXPECT_OK(Job("a", 5)) << "memory above the share, without the three units of b";
  {
    ASSERT_OK_AND_ASSIGN(const Reservation burst, Job("a", 5));
    EXPECT_OK(Job("b", 3)) << "at once";
  }
  Advance(absl::FromChrono(kKeptFor));
  EXPECT_OK(Job("a", 8));
  Sweep();
  EXPECT_EQ(cache_->EvictableBytes(slot(), "a"), 0u);
  Advance(absl::FromChrono(2 * kKeptFor));
  Sweep();
  EXPECT_OK(Job("a", 8));
}

TEST_F(JobSharesTest, NoMoreThanTheShareIsKept) {
  StartOnHost(8);
  PutMany("b", 7);
  PutMany("a", 4);
  EXPECT_EQ(Factors("b"), 4) << "b had more";
  ASSERT_OK_AND_ASSIGN(const Reservation job, Job("b", 2));  // from its own factors
  EXPECT_EQ(Factors("b"), 2);
  EXPECT_EQ(Factors("a"), 4);
}

TEST_F(JobSharesTest, ARequestThatNeverFitsKeepsNothing) {
  StartOnHost(8);
  EXPECT_FALSE(Job("b", 9).ok());
  EXPECT_FALSE(cache_->ReserveOnDevice(slot(), SIZE_MAX, "b").ok());
  EXPECT_OK(Job("a", 8));
}

TEST_F(JobSharesTest, CopiesInHostMemoryUseWhatIsKept) {
  Start(/*device_units=*/4, /*host_units=*/4);
  EXPECT_OK(cache_->ReserveOnHost(2 * kUnit, "b"));
  PutMany("a", 8);
  EXPECT_EQ(Factors("a"), 8) << "copies can be evicted again";
  EXPECT_OK(cache_->ReserveOnHost(2 * kUnit, "b"));
  EXPECT_EQ(Factors("a"), 6);
}

}  // namespace
}  // namespace crout::job_shares_test
