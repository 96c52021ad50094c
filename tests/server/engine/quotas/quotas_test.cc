// SPDX-License-Identifier: Apache-2.0

// Tests the limits in force, and the time of devices that tenants use.
#include "server/engine/quotas/quotas.h"

#include <string>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/error.h"
#include "tests/support/status_matchers.h"
#include "tests/support/timing/failpoints.h"

namespace crout::quotas_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

class QuotasTest : public ::testing::Test {
 protected:
  void Set(std::string_view text) {
    auto table = ParseQuotas(text);
    ASSERT_OK(table);
    quotas_.Set(*std::move(table));
  }

  testing::Failpoints failpoints_;
  Quotas quotas_;
};

TEST_F(QuotasTest, HasNoLimitsAtFirst) {
  EXPECT_OK(quotas_.CheckOrder("a", 1 << 30));
  quotas_.Charge("a", 1e9);
  EXPECT_OK(quotas_.CheckSeconds("a"));
  EXPECT_EQ(quotas_.UsedSeconds("a"), 0);
}

TEST_F(QuotasTest, ARefusalNamesTenantQuotaValueAndLimit) {
  Set("[default]\nmax_n = 5\n");
  EXPECT_OK(quotas_.CheckOrder("a", 5));
  const absl::Status refused = quotas_.CheckOrder("a", 6);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(ReasonOf(refused), Optional(std::string(kReasonQuotaExceeded)));
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("tenant a: the matrix has order 6; the quota max_n is 5. Send a smaller"));
  EXPECT_FALSE(RetryAfterOf(refused)) << "waiting does not help";
  const std::optional<QuotaViolation> violation = QuotaOf(refused);
  ASSERT_TRUE(violation);
  EXPECT_EQ(violation->subject, "tenant:a");
  EXPECT_EQ(violation->description, "the matrix has order 6; the quota max_n is 5");
}

TEST_F(QuotasTest, DeviceSecondsAreRefilledContinuously) {
  Set("[tenant.a]\ndevice_seconds_per_minute = 0.006\n");
  quotas_.Charge("a", 0.005);
  EXPECT_OK(quotas_.CheckSeconds("a"));
  quotas_.Charge("a", 0.604);
  EXPECT_NEAR(quotas_.UsedSeconds("a"), 0.609, 0.1);
  const absl::Status refused = quotas_.CheckSeconds("a");
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  const std::optional<double> delay = RetryAfterOf(refused);
  ASSERT_TRUE(delay);
  EXPECT_NEAR(*delay, 6030, 1000) << "100 minutes of the refill";
  EXPECT_OK(quotas_.CheckSeconds("b"));
  failpoints_.Advance(absl::Seconds(*delay / 2));
  EXPECT_FALSE(quotas_.CheckSeconds("a").ok());
  failpoints_.Advance(absl::Seconds(*delay / 2));
  EXPECT_OK(quotas_.CheckSeconds("a")) << "the delay suffices";
  failpoints_.Advance(absl::Minutes(2));
  quotas_.Sweep();
  EXPECT_EQ(quotas_.UsedSeconds("a"), 0);
}

TEST_F(QuotasTest, NewLimitsApplyAtOnce) {
  Set("[default]\nmax_n = 5\ndevice_seconds_per_minute = 60\n");
  quotas_.Charge("a", 30);
  Set("[default]\nmax_n = 6\ndevice_seconds_per_minute = 10\n");
  EXPECT_OK(quotas_.CheckOrder("a", 6));
  EXPECT_FALSE(quotas_.CheckSeconds("a").ok());
  Set("");
  EXPECT_OK(quotas_.CheckSeconds("a"));
}

}  // namespace
}  // namespace crout::quotas_test
