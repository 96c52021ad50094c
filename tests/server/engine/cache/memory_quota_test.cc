// SPDX-License-Identifier: Apache-2.0

// Tests the quotas of memory, pinned bytes and factors in the cache.
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/cache/memory_shares.h"
#include "server/engine/error.h"
#include "tests/server/engine/cache/cache_fixture.h"
#include "tests/support/status_matchers.h"

namespace crout::memory_quota_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

class MemoryQuotaTest : public CacheTest {
 protected:
  // Host memory alone: a factor that is evicted there is dropped.
  void StartOnHost(size_t units) { Start({DeviceKind::kHost}, /*device_units=*/0, units); }
  void SetLimits(const std::string& tenant, const QuotaLimits& limits) {
    table_.tenants[tenant] = limits;
    quotas_.Set(table_);
  }
  static int64_t Units(int64_t units) { return units * static_cast<int64_t>(kUnit); }

  InsertOptions OptionsFor(const std::string& tenant, bool pin = false) {
    InsertOptions options;
    options.tenant = tenant;
    options.lease = absl::Hours(1);
    options.pin = pin;
    return options;
  }
  Handle PutFor(const std::string& tenant, bool pin = false) {
    return Put('x', kUnit, 0, OptionsFor(tenant, pin));
  }
  void PutMany(const std::string& tenant, int count) {
    for (int i = 0; i < count; ++i) PutFor(tenant);
  }
  absl::StatusOr<Reservation> Job(const std::string& tenant, size_t units) {
    return cache_->ReserveOnDevice(slot(), units * kUnit, tenant);
  }
  int64_t Factors(const std::string& tenant) { return loads_.Of(tenant).factors; }
  // Expects a refusal by the quota `name`. `waiting_helps`: with a retry delay.
  static void ExpectRefused(const absl::Status& status, const std::string& name,
                            bool waiting_helps) {
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_THAT(ReasonOf(status), Optional(std::string(kReasonQuotaExceeded))) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("the quota " + name + " is "));
    EXPECT_EQ(RetryAfterOf(status).has_value(), waiting_helps) << status;
    EXPECT_TRUE(QuotaOf(status).has_value());
  }

 private:
  QuotaTable table_;
};

TEST_F(MemoryQuotaTest, AHardQuotaEvictsTheTenantsOwnFactors) {
  StartOnHost(8);
  SetLimits("a", {.host_bytes = Units(3)});
  PutMany("b", 1);
  PutMany("a", 5);
  EXPECT_EQ(Factors("a"), 3) << "four units are free";
  EXPECT_EQ(HostUnits(), 4u);
  EXPECT_OK(Job("a", 2));
  EXPECT_EQ(Factors("a"), 1);
  EXPECT_EQ(Factors("b"), 1);
}

TEST_F(MemoryQuotaTest, AHardQuotaRefusesWhatItsFactorsDoNotFree) {
  StartOnHost(8);
  SetLimits("a", {.host_bytes = Units(3)});
  PutMany("a", 1);
  ExpectRefused(Job("a", 4).status(), "host_bytes", /*waiting_helps=*/false);
  EXPECT_EQ(Factors("a"), 1) << "nothing was evicted";
  ASSERT_OK_AND_ASSIGN(Reservation job, Job("a", 2));
  ExpectRefused(Job("a", 2).status(), "host_bytes", /*waiting_helps=*/true);
  EXPECT_OK(Job("a", 1));
  EXPECT_EQ(Factors("a"), 0);
  job.Release();
  PutFor("a", /*pin=*/true);
  ExpectRefused(Job("a", 3).status(), "host_bytes", /*waiting_helps=*/false);
  SetLimits("a", {.host_bytes = Units(4)});
  EXPECT_OK(Job("a", 3));
}

TEST_F(MemoryQuotaTest, DeviceBytesLimitTheDeviceAlone) {
  Start(/*device_units=*/8, /*host_units=*/8);
  SetLimits("a", {.device_bytes = Units(2)});
  PutMany("a", 5);
  EXPECT_EQ(DeviceUnits(), 2u);
  EXPECT_EQ(HostUnits(), 3u) << "factors above the quota move to host memory";
  EXPECT_EQ(Factors("a"), 5);
}

TEST_F(MemoryQuotaTest, ASoftQuotaIsTheShareOfTheTenant) {
  StartOnHost(8);
  SetLimits("a", {.host_bytes = Units(6), .soft = true});
  PutMany("b", 8);
  EXPECT_EQ(Factors("b"), 8) << "the memory is lent";
  PutMany("a", 7);
  EXPECT_EQ(Factors("a"), 6);
  EXPECT_EQ(Factors("b"), 2);
  PutMany("b", 3);
  EXPECT_EQ(Factors("a"), 6);
  EXPECT_EQ(Factors("b"), 2);
}

TEST_F(MemoryQuotaTest, TheTenantFurthestAboveItsSoftQuotaLosesFactorsFirst) {
  StartOnHost(12);
  SetLimits("a", {.host_bytes = Units(6), .soft = true});
  SetLimits("b", {.host_bytes = Units(2), .soft = true});
  PutMany("a", 7);
  PutMany("b", 5);
  EXPECT_OK(Job("c", 2));  // a is one unit above its quota, b three
  EXPECT_EQ(Factors("a"), 7);
  EXPECT_EQ(Factors("b"), 3);
}

TEST_F(MemoryQuotaTest, BytesInFlightAreThoseOfJobs) {
  StartOnHost(8);
  SetLimits("a", {.bytes_in_flight = Units(2)});
  PutMany("a", 4);
  ASSERT_OK_AND_ASSIGN(Reservation job, Job("a", 1));
  ExpectRefused(Job("a", 2).status(), "bytes_in_flight", /*waiting_helps=*/true);
  ExpectRefused(Job("a", 3).status(), "bytes_in_flight", /*waiting_helps=*/false);
  EXPECT_OK(Job("a", 1));
  EXPECT_EQ(loads_.Of("a").bytes_in_flight(), Units(1));
  job.Release();
  EXPECT_OK(Job("a", 2));
  EXPECT_EQ(loads_.Of("a").bytes_in_flight(), 0);
}

TEST_F(MemoryQuotaTest, FactorsAreLimited) {
  StartOnHost(8);
  SetLimits("a", {.factors = 2});
  PutMany("a", 1);
  const Handle second = PutFor("a");
  const TenantLoads::Account account = loads_.Open("a");
  ExpectRefused(cache_->CheckFactors(account), "factors", /*waiting_helps=*/false);
  ASSERT_OK_AND_ASSIGN(NewFactor third, Make('x', kUnit, 0, "a"));
  ExpectRefused(cache_->Insert(std::move(third), OptionsFor("a")).status(), "factors",
                /*waiting_helps=*/false);
  ASSERT_OK_AND_ASSIGN(NewFactor next, Make('x', kUnit, 0, "a"));
  EXPECT_OK(cache_->Replace("a", second, std::move(next)));
  ASSERT_OK(cache_->Release("a", second));
  EXPECT_OK(cache_->CheckFactors(account));
  PutFor("a");
  PutMany("b", 3);
}

TEST_F(MemoryQuotaTest, PinnedBytesAreLimited) {
  StartOnHost(8);
  SetLimits("a", {.pinned_bytes = Units(1)});
  const Handle pinned = PutFor("a", /*pin=*/true);
  const Handle other = PutFor("a");
  ExpectRefused(cache_->Renew("a", other, std::nullopt, Renewal::kReplace, true).status(),
                "pinned_bytes", /*waiting_helps=*/false);
  ASSERT_OK(cache_->Renew("a", pinned, std::nullopt, Renewal::kReplace, false));
  EXPECT_OK(cache_->Renew("a", other, std::nullopt, Renewal::kReplace, true));
}

}  // namespace
}  // namespace crout::memory_quota_test
