// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/crout_bench/timing.h"

#include <chrono>
#include <cmath>
#include <numeric>
#include <string>
#include <thread>

#include "tests/support/status_matchers.h"

namespace crout::bench::timing_test {
namespace {

using ::crout::testing::FailsWith;
using ::crout::testing::IsOk;

// Logs its calls. Prepare, Run and Check of subject a are "aP", "aR" and "aC".
class Recorder final : public Subject {
 public:
  Recorder(std::string name, std::string& log) : name_(std::move(name)), log_(log) {}

  absl::Status Prepare() override { return Note("P"); }
  absl::Status Run() override {
    std::this_thread::sleep_for(run_time);
    return Note("R");
  }
  absl::Status Check() override {
    if (--checks_left < 0) return absl::AbortedError("too many sweeps");
    return Note("C");
  }

  int checks_left = 1000;
  std::chrono::milliseconds run_time{0};

 private:
  absl::Status Note(const char* step) {
    log_ += name_ + step + " ";
    return absl::OkStatus();
  }

  const std::string name_;
  std::string& log_;
};

TEST(TimingTest, SubjectsTakeTurnsAfterAnUntimedRun) {
  std::string log;
  Recorder a("a", log);
  Recorder b("b", log);
  const auto timings = TimeInTurns({&a, &b}, 2, 1e9);
  EXPECT_EQ(log, "aP aR aC bP bR bC aP aR aC bP bR bC aP aR aC bP bR bC ");
  ASSERT_EQ(timings.size(), 2u);
  for (const Timing& timing : timings) {
    EXPECT_THAT(timing.status, IsOk());
    EXPECT_EQ(timing.seconds.size(), 2u);
    EXPECT_FALSE(timing.cut_short);
  }
}

TEST(TimingTest, TimesOnlyRun) {
  std::string log;
  Recorder a("a", log);
  a.run_time = std::chrono::milliseconds(5);
  const auto timings = TimeInTurns({&a}, 1, 1e9);
  EXPECT_GE(timings[0].seconds[0], 0.005);
}

TEST(TimingTest, SkipsSubjectsAfterTheirFailure) {
  std::string log;
  Recorder a("a", log);
  Recorder b("b", log);
  a.checks_left = 1;
  const auto timings = TimeInTurns({&a, &b}, 3, 1e9);
  EXPECT_THAT(timings[0].status, FailsWith(absl::StatusCode::kAborted, "sweeps"));
  EXPECT_EQ(timings[1].seconds.size(), 3u);
  nlohmann::ordered_json json;
  AddTiming(timings[0], json);
  EXPECT_EQ(json, nlohmann::ordered_json({{"error", "ABORTED: too many sweeps"}}));
}

TEST(TimingTest, CutsShortSlowSubjects) {
  std::string log;
  Recorder a("a", log);
  a.run_time = std::chrono::milliseconds(2);
  constexpr double kLimit = 0.0035;
  const auto timings = TimeInTurns({&a}, 100, kLimit);
  EXPECT_TRUE(timings[0].cut_short);
  // On a busy machine, any run may take longer. Only the last run may reach the limit.
  const auto& times = timings[0].seconds;
  ASSERT_FALSE(times.empty());
  EXPECT_LE(times.size(), 2u);
  EXPECT_GE(std::accumulate(times.begin(), times.end(), 0.0), kLimit);
  EXPECT_LT(std::accumulate(times.begin(), times.end() - 1, 0.0), kLimit);
  nlohmann::ordered_json json;
  AddTiming(timings[0], json);
  EXPECT_EQ(json["cut_short"], true);
  EXPECT_EQ(json["times_s"].size(), times.size());
}

TEST(TimingTest, ReportsMedianMeanDeviationMinimumAndMaximum) {
  nlohmann::ordered_json json;
  AddTiming({{5, 1, 3}, absl::OkStatus(), false}, json);
  EXPECT_EQ(json, nlohmann::ordered_json({{"median_s", 3.0},
                                          {"mean_s", 3.0},
                                          {"deviation_s", std::sqrt(8.0 / 3)},
                                          {"min_s", 1.0},
                                          {"max_s", 5.0},
                                          {"times_s", {5.0, 1.0, 3.0}}}));
}

}  // namespace
}  // namespace crout::bench::timing_test
