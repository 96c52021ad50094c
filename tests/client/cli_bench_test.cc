// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/time/clock.h"
#include "client/cli/bench/bench.h"
#include "client/cli/bench/bench_report.h"
#include "client/cli/exit_codes.h"
#include "client/cli/report/text.h"

namespace crout::cli::cli_bench_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The run began ten seconds ago, and no worker was free since. Every call still has its scheduled
// time, from which its latency is measured.
TEST(PaceTest, CallsOfARateKeepTheirTimesHoweverLate) {
  const absl::Time begin = absl::Now() - absl::Seconds(10);
  Pace pace({.rate = 10, .warm_up = absl::Seconds(1), .duration = absl::Seconds(2)}, begin);
  int counted = 0;
  for (int i = 0; i < 30; ++i) {
    const auto time = pace.Next();
    ASSERT_TRUE(time.has_value());
    EXPECT_LT(absl::AbsDuration(*time - (begin + i * absl::Milliseconds(100))),
              absl::Microseconds(1));
    counted += pace.Counts(*time) ? 1 : 0;
  }
  EXPECT_EQ(counted, 20);
  EXPECT_FALSE(pace.Next().has_value());
}

TEST(PaceTest, ACallWaitsForItsTime) {
  const absl::Time begin = absl::Now() + absl::Milliseconds(50);
  Pace pace({.rate = 10, .warm_up = {}, .duration = absl::Seconds(2)}, begin);
  EXPECT_EQ(pace.Next(), begin);
  EXPECT_GE(absl::Now(), begin);
}

TEST(PaceTest, WithoutARateCallsBeginAtOnceAndEndByNumber) {
  Pace pace({.warm_up = {}, .duration = {}, .requests = 3}, absl::Now());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(pace.Next().has_value());
  EXPECT_FALSE(pace.Next().has_value());
  Pace cold({.warm_up = absl::Hours(1), .duration = {}, .requests = 1}, absl::Now());
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(cold.Counts(*cold.Next()));
}

// Returns a run with calls of one kind, each with this latency.
Json RunOf(const char* call, absl::Duration latency) {
  BenchResult result;
  result.elapsed = absl::Seconds(2);
  for (int i = 0; i < 10; ++i) result.calls[call].latencies.Record(latency);
  Json run = {{"server", "<script>"}, {"date", "2026-11-23 12:00"}, {"results", Json::array()}};
  AppendRows(4, 100, result, &run["results"]);
  return run;
}

TEST(BenchReportTest, RowsCompareWithTheirLike) {
  Json run = RunOf("solve", absl::Milliseconds(20));
  CompareRows(RunOf("factorize", absl::Milliseconds(5)), &run["results"]);
  EXPECT_FALSE(run["results"][0].contains("p50_ratio"));  // no run to compare with
  CompareRows(RunOf("solve", absl::Milliseconds(10)), &run["results"]);
  EXPECT_NEAR(run["results"][0]["p50_ratio"].get<double>(), 2, 0.04);
  EXPECT_NEAR(run["results"][0]["per_second_ratio"].get<double>(), 1, 1e-12);
  EXPECT_EQ(run["results"][0]["requests"], 10);
}

TEST(BenchReportTest, ThePageShowsBothRunsAndNoMarkupFromOutside) {
  const Json run = RunOf("solve", absl::Milliseconds(20));
  const Json old = RunOf("solve", absl::Milliseconds(10));
  const std::string page = BenchHtml(run, &old);
  EXPECT_THAT(page, AllOf(HasSubstr("&lt;script&gt;"), Not(HasSubstr("<script>")),
                          HasSubstr("stroke-dasharray"), HasSubstr("2026-11-23 12:00"),
                          HasSubstr("solve, 4 workers, 100 a second"), HasSubstr("99.99 %")));
  EXPECT_THAT(BenchHtml(run, nullptr), Not(HasSubstr("stroke-dasharray")));
}

TEST(BenchReportTest, OtherFilesAreNoBaseline) {
  const std::string path = ::testing::TempDir() + "cli_bench_test.json";
  const auto read = [&](const std::string& text) {
    EXPECT_TRUE(WriteTextFile(path, text).ok());
    return ReadRun(path).status();
  };
  for (const char* text : {"", "[]", "{}", R"({"results": [1]})", R"({"results": [{}]})"}) {
    EXPECT_TRUE(IsFileError(read(text))) << text;
  }
  EXPECT_TRUE(read(RunOf("solve", absl::Milliseconds(1)).dump()).ok());
  EXPECT_TRUE(IsFileError(ReadRun(path + ".absent").status()));
  EXPECT_TRUE(IsFileError(WriteTextFile("/no/such/place/report.html", "")));
}

}  // namespace
}  // namespace crout::cli::cli_bench_test
