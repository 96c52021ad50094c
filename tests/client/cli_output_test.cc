// SPDX-License-Identifier: Apache-2.0

// Tests the output of croutctl: JSON, tables, summaries, durations, percentiles, progress.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "client/cli/bench/latency_histogram.h"
#include "client/cli/report/json.h"
#include "client/cli/report/progress_bar.h"
#include "client/cli/report/summary.h"
#include "client/cli/report/text.h"
#include "crout/client_options.h"
#include "crout/results.h"
#include "kernels/util/duration.h"

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
  EXPECT_EQ(FormatValue("factor_seconds", Json(0.00123)), "1.23ms");
  EXPECT_EQ(FormatValue("n", Json(1000)), "1000");
  EXPECT_EQ(FormatValue("rcond", Json(1.0 / 3)), "0.333333");
  EXPECT_EQ(FormatValue("healthy", Json(true)), "yes");
  EXPECT_EQ(FormatValue("algorithms", Json({"getrf", "cmpp"})), "getrf cmpp");
}

TEST(TextTest, TimesAndDurationsOfTheContractHaveCroutctlsNotation) {
  EXPECT_EQ(FormatValue("create_time", "2026-11-28T13:15:13.088240355Z"), "2026-11-28T13:15:13Z");
  EXPECT_EQ(FormatValue("create_time", "2026-11-28T13:15:13Z"), "2026-11-28T13:15:13Z");
  EXPECT_EQ(FormatValue("max_lease", "604800s"), "7d");
  EXPECT_EQ(FormatValue("upload_max_time", "5400s"), "1h30m");
  EXPECT_EQ(FormatValue("name", "5400s"), "5400s") << "a text of a user";
}

TEST(DurationTest, HasGosNotationAndDays) {
  const std::pair<const char*, absl::Duration> cases[] = {
      {"0s", absl::ZeroDuration()},
      {"116ns", absl::Nanoseconds(116)},
      {"455us", absl::Microseconds(455)},
      {"1.91ms", absl::Microseconds(1910)},
      {"12.5s", absl::Seconds(12.5)},
      {"1m30s", absl::Seconds(90)},
      {"15m", absl::Minutes(15)},
      {"1h30m", absl::Minutes(90)},
      {"1d12h", absl::Hours(36)},
      {"7d", absl::Hours(7 * 24)},
      {"1d1s", absl::Hours(24) + absl::Seconds(1)},
      {"inf", absl::InfiniteDuration()},
  };
  for (const auto& [text, duration] : cases) {
    EXPECT_EQ(DurationText(duration), text);
    EXPECT_EQ(DurationFrom(text), duration) << text;
  }
  EXPECT_EQ(DurationText(absl::Nanoseconds(999'900)), "1ms") << "rounds up to the next unit";
  EXPECT_EQ(DurationText(absl::Seconds(59.97)), "1m");
  EXPECT_EQ(DurationText(absl::Seconds(90.4)), "1m30s");
  EXPECT_EQ(DurationText(-absl::Seconds(2)), "-2s");
  EXPECT_EQ(DurationFrom("36h"), absl::Hours(36));
  EXPECT_EQ(DurationFrom("0.5d"), absl::Hours(12));
  EXPECT_EQ(DurationFrom("1d12h30m"), absl::Hours(36) + absl::Minutes(30));
  EXPECT_EQ(DurationFrom("5\u00b5s"), absl::Microseconds(5));
  EXPECT_EQ(DurationFrom("0"), absl::ZeroDuration());
  for (const char* const wrong :
       {"", "d", "5", "1.d.2", "soon", "-1h", "-1d", "1 d", "1h-30m", "7days", "1e3s"}) {
    EXPECT_EQ(DurationFrom(wrong), std::nullopt) << wrong;
  }
}

// The number of lines of a summary.
int64_t Lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

TEST(SummaryTest, AFactorHasFiveLines) {
  FactorDescription factor;
  factor.handle = "edwrgl32mh3m3slppddrchiamu";
  factor.name = "demo\x1b";
  factor.version = 2;
  factor.n = 256;
  factor.algorithm = Algorithm::kGetrf;
  factor.device = "host";
  factor.factor_dtype = Dtype::kFloat32;
  factor.matrix_dtype = Dtype::kFloat64;
  factor.precision = Precision::kSingle;
  factor.quality = 0.0867346;
  factor.pivot_growth = 1;
  factor.rcond = 0.00962208;
  factor.determinant = {.sign = -1, .log_abs = 12.5};
  factor.nnz = 1216;
  factor.tier = Tier::kHost;
  factor.bytes = 561152;
  factor.timings.total_seconds = 0.0026;
  factor.lease_expire_time = absl::FromUnixSeconds(1'700'000'000);
  EXPECT_EQ(SummaryOf(factor),
            "handle    edwrgl32mh3m3slppddrchiamu (demo\\x1b, version 2)\n"
            "matrix    256 x 256 f64, 1216 entries, not kept\n"
            "method    getrf on host in 2.6ms, f32 (precision single), 548.0 KiB of host memory\n"
            "accuracy  info 0, quality 0.0867, pivot growth 1, rcond 0.00962, "
            "determinant -1 exp(12.5)\n"
            "lease     until 2023-11-14T22:13:20Z\n");
  factor.info = 3;
  factor.singular_reason = SingularReason::kZeroPivot;
  EXPECT_THAT(SummaryOf(factor), ::testing::HasSubstr("accuracy  singular, info 3, zero_pivot\n"));
  factor.batch = {.members = 2, .max_rows = 3, .max_cols = 3, .singular = 1};
  EXPECT_THAT(SummaryOf(factor), ::testing::HasSubstr("2 matrices of at most 3 x 3 f64"));
  EXPECT_THAT(SummaryOf(factor), ::testing::HasSubstr("1 singular, 0 poor"));
  EXPECT_EQ(Lines(SummaryOf(factor)), 5);
}

TEST(SummaryTest, NoResultHasMoreThanFiveLines) {
  SolveResult solved;
  solved.backward_error = 2.11617e-16;
  solved.componentwise_error = 1e-16;
  solved.forward_error_bound = 1.8e-12;
  solved.refinement_steps = 1;
  solved.solver = Solver::kGetrs;
  solved.fallback = SolverFallback::kNone;
  solved.factor_version = 1;
  solved.nrhs = 1;
  solved.device = "host";
  solved.timings.total_seconds = 282e-6;
  EXPECT_EQ(SummaryOf(solved, "in x.mtx", nullptr),
            "backward_error  2.12e-16, after 1 refinement step\n"
            "bounds          componentwise 1e-16, forward error 1.8e-12\n"
            "method          getrs on host in 282us\n"
            "factor          version 1\n"
            "solution        1 column, in x.mtx\n");
  FactorDescription factor;
  factor.algorithm = Algorithm::kGetrf;
  EXPECT_THAT(SummaryOf(solved, "in x.mtx", &factor),
              ::testing::HasSubstr("getrf and getrs on host in 282us\nfactor          not kept\n"));
  ServerInfo info;
  info.version = "0.1.0";
  info.start_time = absl::FromUnixSeconds(1000);
  info.devices.resize(2);
  info.devices[0].name = "host";
  info.devices[0].healthy = true;
  info.devices[0].streams = 2;
  info.devices[0].streams_busy = 1;
  info.devices[1].name = "cuda:0";
  info.limits.default_lease = absl::Hours(1);
  info.limits.max_lease = absl::Hours(168);
  info.limits.max_n = 46340;
  info.tenants.resize(3);
  EXPECT_EQ(SummaryOf(info, "127.0.0.1:50051", absl::FromUnixSeconds(1000 + 3723)),
            "server   127.0.0.1:50051, croutd 0.1.0, up 1h2m3s\n"
            "devices  host cuda:0 (fenced off), 1 of 2 streams busy, 0 queued\n"
            "cache    0 factors, 0 B of 0 B of host memory\n"
            "limits   order 46340, lease 1h, longest 7d\n"
            "tenants  3\n");
  EchelonFormResult echelon;
  echelon.rank = 2;
  echelon.pivot_columns = {0, 2};
  echelon.least_pivot = 0.5;
  echelon.device = "host";
  EXPECT_EQ(Lines(SummaryOf(echelon, "in r.npy")), 5);
  ComplementResult complement;
  complement.device = "host";
  EXPECT_EQ(Lines(SummaryOf(complement, "in s.npy", factor)), 3) << "has no handle";
  Estimate estimate;
  estimate.rough = true;
  estimate.peak_bytes = int64_t{3} << 30;
  EXPECT_THAT(SummaryOf(estimate), ::testing::HasSubstr("3.0 GiB while it runs"));
  EXPECT_EQ(Lines(SummaryOf(estimate)), 5);
  EXPECT_EQ(Lines(BatchSummaryOf(solved, {"x_0.mtx", "x_1.mtx"})), 5);
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
  EXPECT_EQ(ProgressLine(update, absl::Seconds(2)), "queued  3 ahead  2s");
  update.job->phase = Phase::kFactor;
  update.job->jobs_ahead = 0;
  update.job->predicted_seconds = 40;
  EXPECT_EQ(ProgressLine(update, absl::Seconds(12.5)), "factoring  12.5s of about 40s");
  update.job->columns_done = 1200;
  update.job->columns = 4096;
  EXPECT_EQ(ProgressLine(update, absl::Seconds(12.5)),
            "factoring  [========                      ]  29 %  1200 of 4096 columns  12.5s of "
            "about 40s");
  update.job->columns_done = 5000;  // more than announced
  EXPECT_THAT(ProgressLine(update, absl::Seconds(1)), ::testing::HasSubstr("=]  100 %"));
  update.job.emplace().phase = Phase::kAnalyze;
  update.job->steps = 4;
  EXPECT_EQ(ProgressLine(update, absl::Seconds(1)), "analyzing  0 of 4 steps  1s");
}

TEST(ProgressBarTest, PrintsALineForEachPhase) {
  ProgressUpdate update{64, 64, std::nullopt};
  const auto printed = [&](ProgressMode mode) {
    ::testing::internal::CaptureStderr();
    {
      ProgressBar bar(mode);
      bar.Update(update);
      bar.Update(update);
      ProgressUpdate factoring = update;
      factoring.job.emplace().phase = Phase::kFactor;
      factoring.job->columns_done = 1;
      factoring.job->columns = 2;
      bar.Update(factoring);
    }
    return ::testing::internal::GetCapturedStderr();
  };
  const std::string lines = printed(ProgressMode::kLines);
  EXPECT_EQ(Lines(lines), 2) << lines;
  EXPECT_THAT(lines, ::testing::HasSubstr("50 %  1 of 2 columns"));
  EXPECT_THAT(lines, ::testing::Not(::testing::HasSubstr("\x1b")));
  const std::string json = printed(ProgressMode::kJsonLines);
  ASSERT_EQ(Lines(json), 2) << json;
  const Json last = Json::parse(json.substr(json.find('\n')));
  EXPECT_EQ(last["progress"]["phase"], "factor");
  EXPECT_EQ(last["progress"]["columns_done"], 1);
  EXPECT_EQ(last["progress"]["bytes_sent"], 64);
  EXPECT_EQ(printed(ProgressMode::kNone), "");
}

}  // namespace
}  // namespace crout::cli::cli_output_test
