// SPDX-License-Identifier: Apache-2.0

#include "server/observability/status/number_format.h"

#include <gtest/gtest.h>

#include "server/observability/metrics/metrics.h"
#include "server/observability/status/heat_map.h"

namespace crout::number_format_test {
namespace {

TEST(NumberFormatTest, SecondsHaveThreeDigitsAndAUnit) {
  EXPECT_EQ(Seconds(0), "0.00 &#181;s");
  EXPECT_EQ(Seconds(12.34e-6), "12.3 &#181;s");
  EXPECT_EQ(Seconds(999.7e-6), "1.00 ms");
  EXPECT_EQ(Seconds(0.125), "125 ms");
  EXPECT_EQ(Seconds(1.25), "1.25 s");
  EXPECT_EQ(Seconds(119), "119 s");
  EXPECT_EQ(Seconds(125), "2 min 5 s");
  EXPECT_EQ(Seconds(12000), "3 h 20 min");
  EXPECT_EQ(Seconds(2 * 86400 + 3600), "2 d 1 h");
}

TEST(NumberFormatTest, BytesCountsAndPerCent) {
  EXPECT_EQ(Bytes(0), "0 B");
  EXPECT_EQ(Bytes(1023), "1023 B");
  EXPECT_EQ(Bytes(1536), "1.50 KiB");
  EXPECT_EQ(Bytes((int64_t{1} << 30) - 1), "1.00 GiB");
  EXPECT_EQ(Bytes(int64_t{80} << 30), "80.0 GiB");
  EXPECT_EQ(Count(999), "999");
  EXPECT_EQ(Count(1234567), "1,234,567");
  EXPECT_EQ(Count(-1234), "-1,234");
  EXPECT_EQ(Percent(999, 1000), 99);
  EXPECT_EQ(Percent(3, 0), 0);
  EXPECT_EQ(Percent(7, 5), 100);
}

TEST(NumberFormatTest, LatenciesByDecadeAndQuantile) {
  Metrics metrics(MetricsOptions{});
  EXPECT_EQ(metrics.ReadPhase(JobPhase::kFactor).count, 0u);
  EXPECT_EQ(Quantile(metrics.ReadPhase(JobPhase::kFactor), 0.5), 0);
  for (const double seconds : {5e-5, 1e-4, 2e-3, 0.5, 0.9, 30.0, 1e5}) {
    metrics.ObservePhase(JobPhase::kFactor, seconds);
  }
  const HistogramReading reading = metrics.ReadPhase(JobPhase::kFactor);
  EXPECT_EQ(reading.count, 7u);
  EXPECT_EQ(ByDecade(reading), (DecadeCounts{2, 0, 1, 0, 2, 0, 2}));
  // The fourth of the seven values is in the bucket from 0.4 s to 0.5 s.
  EXPECT_DOUBLE_EQ(Quantile(reading, 4.0 / 7), 0.5);
  EXPECT_DOUBLE_EQ(Quantile(reading, 3.5 / 7), 0.45);
  EXPECT_DOUBLE_EQ(Quantile(reading, 1), 3600) << "the highest bound";
}

TEST(NumberFormatTest, HeatLevelsCoverTheCounts) {
  EXPECT_EQ(HeatLevel(3, 3, 3), 0);
  EXPECT_EQ(HeatLevel(2, 2, 3), 0);
  EXPECT_EQ(HeatLevel(3, 2, 3), kHeatLevels / 2);
  EXPECT_EQ(HeatLevel(1, 1, 1000), 0);
  EXPECT_EQ(HeatLevel(1000, 1, 1000), kHeatLevels - 1);
  for (int count = 0; count < kHeatLevels; ++count) {
    EXPECT_EQ(HeatLevel(count, 0, kHeatLevels - 1), count);
  }
}

}  // namespace
}  // namespace crout::number_format_test
