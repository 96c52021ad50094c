// SPDX-License-Identifier: Apache-2.0

// Tests the reports of jobs that take far longer than predicted, and the end of factorizations that
// stand still.
#include <atomic>
#include <optional>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/observability/status/status_page.h"
#include "server/operations_pages.h"
#include "server/rpc/codec/status.h"
#include "tests/server/rpc/fixture.h"
#include "tests/server/scrape.h"

namespace crout::testing::overdue_job_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Optional;

constexpr int64_t kN = 40;

class OverdueJobTest : public RpcTest {
 protected:
  // A message of progress may be on its way when the clock jumps. No jump may end its call.
  static Config PatientConfig() {
    Config config = SmallConfig();
    config.limits.transfer.idle_timeout = absl::Hours(24);
    config.limits.transfer.max_time = absl::Hours(24);
    return config;
  }
  std::string StatusPage() {
    return RenderStatusPage(ViewStatus(core(), components().State(), /*serving=*/true));
  }
  std::optional<double> Sample(const char* series) {
    return SampleOf(core().metrics.Scrape(), series);
  }
  // Starts a factorization and waits until it runs; it is held there.
  std::thread StartHeldFactorization() {
    device().factor_gate().Close();
    std::thread client([this] {
      v1::Factor factor;
      EXPECT_TRUE(Factorize(kN, &factor).ok());
    });
    device().factor_gate().WaitUntilHeld();
    return client;
  }
};

TEST_F(OverdueJobTest, IsReportedWhileItRuns) {
  StartServer({}, PatientConfig());
  std::thread client = StartHeldFactorization();
  PassTime(absl::Seconds(59));
  EXPECT_THAT(Sample("crout_overdue_jobs"), Optional(0));
  EXPECT_THAT(StatusPage(), Not(HasSubstr("overdue")));
  PassTime(absl::Seconds(2));
  PassTime(absl::Seconds(1));  // It is reported once.
  EXPECT_THAT(Sample("crout_overdue_jobs"), Optional(1));
  EXPECT_THAT(StatusPage(), HasSubstr("work, overdue"));
  device().factor_gate().Open();
  client.join();
  Idle();
  EXPECT_THAT(Sample("crout_overdue_jobs"), Optional(0));
}

TEST_F(OverdueJobTest, ALongPredictionDelaysTheReport) {
  StartServer({.slowness = 1e12}, PatientConfig());
  std::thread client = StartHeldFactorization();
  PassTime(absl::Minutes(10));
  EXPECT_THAT(Sample("crout_overdue_jobs"), Optional(0));
  device().factor_gate().Open();
  client.join();
}

TEST_F(OverdueJobTest, AFactorizationThatStandsStillIsEnded) {
  Config config = PatientConfig();
  config.limits.stalled_job_timeout = absl::Minutes(5);
  StartServer({.stalls_at = 8}, config);
  const Holdings before = Idle();
  std::atomic<bool> ended = false;
  grpc::Status status;
  std::thread client([&] {
    v1::Factor factor;
    status = Factorize(kN, &factor);
    ended = true;
  });
  WaitUntil([&] { return Held().streams_busy == 1; }, "the job to run");
  while (!ended) PassTime(absl::Minutes(6));
  client.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_THAT(status.error_message(), HasSubstr("after column 8 of 40"));
  EXPECT_THAT(status.error_details(), HasSubstr(kReasonJobStalled));
  EXPECT_THAT(Sample("crout_stalled_jobs_total"), Optional(1));
  ExpectHeldSoon(before);
}

TEST_F(OverdueJobTest, WithoutALimitAFactorizationThatStandsStillContinues) {
  StartServer({.stalls_at = 8}, PatientConfig());
  std::thread client([&] {
    v1::Factor factor;
    EXPECT_EQ(Factorize(kN, &factor).error_code(), grpc::StatusCode::UNAVAILABLE);
  });
  WaitUntil([&] { return Held().streams_busy == 1; }, "the job to run");
  for (int i = 0; i < 3; ++i) PassTime(absl::Hours(1));
  WaitUntil([&] { return Sample("crout_overdue_jobs") == 1; }, "the report of the job");
  EXPECT_THAT(Sample("crout_stalled_jobs_total"), Optional(0));
  core().calls.AbortAll(absl::UnavailableError("aborted by the test"));
  client.join();
}

}  // namespace
}  // namespace crout::testing::overdue_job_test
