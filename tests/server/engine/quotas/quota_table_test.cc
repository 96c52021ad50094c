// SPDX-License-Identifier: Apache-2.0

// Tests the file of --quotas.
#include "server/engine/quotas/quota_table.h"

#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace crout::quota_table_test {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(std::string_view text) {
  const auto table = ParseQuotas(text);
  EXPECT_FALSE(table.ok()) << text;
  return std::string(table.status().message());
}

TEST(QuotaTableTest, AnEmptyFileHasNoLimits) {
  ASSERT_OK_AND_ASSIGN(const QuotaTable table, ParseQuotas("# no limits\n\n"));
  EXPECT_EQ(table.Of("alice"), QuotaLimits());
  EXPECT_TRUE(table.tenants.empty());
}

TEST(QuotaTableTest, ReadsEachKey) {
  ASSERT_OK_AND_ASSIGN(const QuotaTable table, ParseQuotas(R"([tenant.alice]
device_bytes = "8GiB"   # comment
host_bytes = 1_048_576
soft = true
pinned_bytes = 0
factors = 10
bytes_in_flight = "1TiB"
queued_jobs = 20
running_jobs = 1
max_n = 5000
device_seconds_per_minute = 0.5
)"));
  const QuotaLimits& alice = table.Of("alice");
  EXPECT_EQ(alice.device_bytes, int64_t{8} << 30);
  EXPECT_EQ(alice.host_bytes, 1048576);
  EXPECT_TRUE(alice.soft);
  EXPECT_EQ(alice.pinned_bytes, 0);
  EXPECT_EQ(alice.factors, 10);
  EXPECT_EQ(alice.bytes_in_flight, int64_t{1} << 40);
  EXPECT_EQ(alice.queued_jobs, 20);
  EXPECT_EQ(alice.running_jobs, 1);
  EXPECT_EQ(alice.max_n, 5000);
  EXPECT_EQ(alice.device_seconds_per_minute, 0.5);
  EXPECT_EQ(table.Of("bob"), QuotaLimits());
}

TEST(QuotaTableTest, TenantsInheritTheDefaults) {
  ASSERT_OK_AND_ASSIGN(const QuotaTable table, ParseQuotas(R"([tenant.a.b]
max_n = 7
factors = "none"
[tenant."c-d"]
device_seconds_per_minute = "none"
[default]
max_n = 5
factors = 3
soft = true
device_seconds_per_minute = 2
)"));
  EXPECT_EQ(table.Of("other").max_n, 5);
  EXPECT_EQ(table.Of("a.b").max_n, 7);
  EXPECT_EQ(table.Of("a.b").factors, QuotaLimits::kNoLimit);
  EXPECT_TRUE(table.Of("a.b").soft);
  EXPECT_EQ(table.Of("a.b").device_seconds_per_minute, 2);
  EXPECT_EQ(table.Of("c-d").max_n, 5);
  EXPECT_EQ(table.Of("c-d").device_seconds_per_minute, std::numeric_limits<double>::infinity());
}

TEST(QuotaTableTest, ErrorsNameTheLineAndTheFix) {
  EXPECT_THAT(ErrorOf("max_n = 5\n"),
              HasSubstr("line 1: this line comes before the first section"));
  EXPECT_THAT(ErrorOf("[defaults]\n"), HasSubstr("neither [default] nor [tenant.NAME]"));
  EXPECT_THAT(ErrorOf("[tenant.]\n"), HasSubstr("1 to 64 characters"));
  EXPECT_THAT(ErrorOf("[tenant.a b]\n"), HasSubstr("1 to 64 characters"));
  EXPECT_THAT(ErrorOf("[default]\n[default]\n"), HasSubstr("line 2: duplicate section [default]"));
  EXPECT_THAT(ErrorOf("[default]\nmax_m = 5\n"), HasSubstr("line 2: 'max_m' is not a quota"));
  EXPECT_THAT(ErrorOf("[default]\nmax_n = 5\nmax_n = 6\n"), HasSubstr("line 3: duplicate max_n"));
  EXPECT_THAT(ErrorOf("[default]\nmax_n\n"), HasSubstr("neither [SECTION] nor KEY = VALUE"));
}

TEST(QuotaTableTest, RefusesValuesOutOfRange) {
  for (const std::string line :
       {"max_n = 0", "max_n = -1", "max_n = 1.5", "max_n = \"1GiB\"", "max_n = ", "queued_jobs = 0",
        "running_jobs = 0", "device_bytes = \"8 GB\"", "device_bytes = \"9\"",
        "device_bytes = 9223372036854775807", "device_bytes = \"8388608TiB\"",
        "device_bytes = \"-1GiB\"", "device_bytes = \"1GiBGiB\"", "bytes_in_flight = 0"}) {
    EXPECT_THAT(ErrorOf("[default]\n" + line + "\n"), HasSubstr("line 2: ")) << line;
  }
  for (const std::string value : {"0", "-1", "nan", "inf", "\"1\""}) {
    EXPECT_THAT(ErrorOf("[default]\ndevice_seconds_per_minute = " + value + "\n"),
                HasSubstr("is not a number above 0"))
        << value;
  }
  EXPECT_THAT(ErrorOf("[default]\nsoft = 1\n"), HasSubstr("neither true nor false"));
}

}  // namespace
}  // namespace crout::quota_table_test
