// SPDX-License-Identifier: Apache-2.0

// Tests the output of croutctl: JSON, tables, percentiles, the progress line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "client/cli/bench/latency_histogram.h"
#include "client/cli/report/json.h"
#include "client/cli/report/progress_bar.h"
#include "client/cli/report/text.h"
#include "crout/client_options.h"
#include "crout/results.h"

namespace crout::cli::cli_output_test {
namespace {

TEST(JsonTest, FactorHasTheDesignsKeysAndValues) {
  FactorDescription factor;
  factor.handle = "abc";
  factor.n = int64_t{1} << 53;
  factor.algorithm = Algorithm::kCroutLu;
  factor.factor_dtype = Dtype::kFloat32;
  factor.unit_diagonal = UnitTriangle::kU;
  factor.pivot_growth = std::numeric_limits<double>::infinity();
  factor.norm_one = std::nan("");
  factor.norm_inf = 0.1;
  factor.determinant = {.log_abs = -std::numeric_limits<double>::infinity()};
  factor.create_time = absl::FromUnixSeconds(1'700'000'000);
  factor.timings.factor_seconds = 0.25;
  const Json json = ToJson(factor);
  EXPECT_EQ(json["handle"], "abc");
  EXPECT_EQ(json["n"].dump(), "9007199254740992");
  EXPECT_EQ(json["algorithm"], "crout_lu");
  EXPECT_EQ(json["factor_dtype"], "f32");
  EXPECT_EQ(json["unit_diagonal"], "u");
  EXPECT_EQ(json["pivot_growth"], "Infinity");
  EXPECT_EQ(json["norm_one"], "NaN");
  EXPECT_EQ(json["norm_inf"].dump(), "0.1");
  EXPECT_EQ(json["determinant"]["log_abs"], "-Infinity");
  EXPECT_EQ(json["create_time"], "2023-11-14T22:13:20Z");
  EXPECT_EQ(json["timings"]["factor_seconds"], 0.25);
  EXPECT_EQ(json["info"], 0);
  EXPECT_EQ(json["has_matrix"], false);
  EXPECT_FALSE(json.contains("rcond")) << "has presence and is not set";
  EXPECT_FALSE(json.contains("nnz"));
  EXPECT_EQ(json["tier"], "unspecified");
  EXPECT_EQ(json.begin().key(), "handle");
}

TEST(JsonTest, RepeatedFieldsAndDurations) {
  ServerInfo info;
  info.devices.resize(1);
  info.devices[0].streams = 4;
  info.devices[0].algorithms = {Algorithm::kGetrf, Algorithm::kCmpp};
  info.limits.max_lease = absl::Hours(24);
  const Json json = ToJson(info);
  EXPECT_EQ(json["devices"][0]["algorithms"], Json({"getrf", "cmpp"}));
  EXPECT_EQ(json["devices"][0]["streams"], 4);
  EXPECT_EQ(json["limits"]["max_lease"], "86400s");
  EXPECT_EQ(json["tenants"], Json::array());
  EXPECT_FALSE(json["limits"].contains("max_life"));
}

TEST(TextTest, UnitsFollowTheKey) {
  EXPECT_EQ(FormatValue("peak_bytes", Json(int64_t{512} << 20)), "512.0 MiB");
  EXPECT_EQ(FormatValue("bytes", Json(17)), "17 B");
  EXPECT_EQ(FormatValue("factor_seconds", Json(0.00123)), "1.23 ms");
  EXPECT_EQ(FormatValue("n", Json(1000)), "1000");
  EXPECT_EQ(FormatValue("rcond", Json(1.0 / 3)), "0.333333");
  EXPECT_EQ(FormatValue("healthy", Json(true)), "yes");
  EXPECT_EQ(FormatValue("algorithms", Json({"getrf", "cmpp"})), "getrf cmpp");
}

TEST(TextTest, NamesMoveNoTerminal) {
  EXPECT_EQ(FormatValue("name", "M\u00fcller \u00e9"), "M\u00fcller \u00e9");
  EXPECT_EQ(FormatValue("name", "a\x1b[31m\n\u009b2J\u202eb"),
            "a\\x1b[31m\\n\\xc2\\x9b2J\\xe2\\x80\\xaeb");
}

TEST(TextTest, ColumnsAreAligned) {
  EXPECT_EQ(FormatObject(Json{{"n", 3},
                              {"handle", "ab"},
                              {"warnings", Json::array()},
                              {"timings", {{"a_seconds", 0}, {"info", 0}, {"b", 2}}}}),
            "n        3\nhandle   ab\ntimings\n  info   0\n  b      2\n");
  EXPECT_EQ(FormatObjects({"name", "n"}, Json{{{"name", "long name"}, {"n", 1}}, {{"n", 22}}}),
            "name       n\nlong name  1\n-          22\n");
}

TEST(LatencyHistogramTest, QuantilesAreCloseAndNeverTooLow) {
  LatencyHistogram low, high;
  for (int i = 1; i <= 5000; ++i) low.Record(absl::Microseconds(i));
  for (int i = 5001; i <= 10000; ++i) high.Record(absl::Microseconds(i));
  low.Merge(high);
  EXPECT_EQ(low.count(), 10000);
  EXPECT_EQ(low.max(), absl::Microseconds(10000));
  for (const double q : {0.0001, 0.005, 0.5, 0.9, 0.99}) {
    const double exact = q * 10000;
    const double got = absl::ToDoubleMicroseconds(low.Quantile(q));
    EXPECT_GE(got, exact) << q;
    EXPECT_LE(got, exact * 1.016 + 1) << q;
  }
  EXPECT_EQ(low.Quantile(1), low.max());
  EXPECT_EQ(LatencyHistogram().Quantile(0.5), absl::ZeroDuration());
}

TEST(LatencyHistogramTest, ExtremesDoNotOverflow) {
  LatencyHistogram histogram;
  histogram.Record(absl::Hours(24 * 365));
  histogram.Record(-absl::Seconds(1));  // the clock was set back
  EXPECT_EQ(histogram.count(), 2);
  EXPECT_EQ(histogram.Quantile(1), absl::Hours(24 * 365));
}

TEST(ProgressLineTest, ShowsThePhaseAndItsProgress) {
  ProgressUpdate update{512 << 20, int64_t{1} << 30, std::nullopt};
  EXPECT_EQ(ProgressLine(update, absl::Seconds(1)),
            "upload  [===============               ]  50 %  512.0 MiB/s");
  update.bytes_total = -1;
  EXPECT_EQ(ProgressLine(update, absl::Seconds(2)), "upload  512.0 MiB  256.0 MiB/s");
  update.job.emplace().phase = Phase::kQueue;
  update.job->jobs_ahead = 3;
  EXPECT_EQ(ProgressLine(update, absl::Seconds(2)), "queued  2.0 s  3 ahead");
  update.job->phase = Phase::kFactor;
  update.job->jobs_ahead = 0;
  update.job->predicted_seconds = 40;
  EXPECT_EQ(ProgressLine(update, absl::Seconds(12.5)), "factoring  12.5 s of about 40 s");
  update.job->columns_done = 1200;
  update.job->columns = 4096;
  EXPECT_EQ(ProgressLine(update, absl::Seconds(12.5)),
            "factoring  12.5 s of about 40 s  1200 of 4096 columns");
  update.job.emplace().phase = Phase::kAnalyze;
  update.job->steps = 4;
  EXPECT_EQ(ProgressLine(update, absl::Seconds(1)), "analyzing  1.0 s  0 of 4 steps");
}

}  // namespace
}  // namespace crout::cli::cli_output_test
