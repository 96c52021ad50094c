// SPDX-License-Identifier: Apache-2.0

#include "server/observability/calls/call_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_split.h"
#include "server/engine/error.h"
#include "server/observability/calls/observed_call.h"
#include "spdlog/sinks/ostream_sink.h"
#include "spdlog/spdlog.h"
#include "tests/support/timing/failpoints.h"

namespace crout::call_log_test {
namespace {

using crout::testing::Failpoints;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kHandle[] = "bupk7voalpecdtuzayaru6fuxi";

class CallLogTest : public ::testing::Test {
 protected:
  CallLogTest() : before_(spdlog::default_logger()) {
    auto logger = std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_));
    logger->set_pattern("%l %v");
    spdlog::set_default_logger(std::move(logger));
  }
  ~CallLogTest() override { spdlog::set_default_logger(before_); }

  // Returns the lines that were written since the previous call of Lines().
  std::vector<std::string> Lines() {
    const std::vector<std::string> lines = absl::StrSplit(text_.str(), '\n', absl::SkipEmpty());
    text_.str("");
    return lines;
  }
  void Write(CallLog& log, double seconds, const absl::Status& status = absl::OkStatus()) {
    ObservedCall call(Method::kSolve, "ipv4:192.0.2.1:5", std::nullopt);
    call.status = status;
    log.Write(call, seconds);
  }

  Failpoints failpoints_;  // controls the clock
  std::ostringstream text_;
  const std::shared_ptr<spdlog::logger> before_;
};

// Returns the sum of the numbers of skipped calls that these lines report.
size_t Skipped(const std::vector<std::string>& lines) {
  constexpr std::string_view kSkipped = " skipped=";
  size_t skipped = 0;
  for (const std::string& line : lines) {
    const size_t at = line.find(kSkipped);
    if (at != std::string::npos) skipped += std::stoul(line.substr(at + kSkipped.size()));
  }
  return skipped;
}

TEST_F(CallLogTest, SlowCallsAndFaultsAreLoggedBeyondTheSample) {
  CallLog log({.calls = LogCalls::kSampled, .slow = absl::Seconds(3)});
  // A new second may begin during the loop. At most a fixed number of lines is written per second.
  for (int i = 0; i < 1000; ++i) Write(log, 0.1, absl::NotFoundError("no such factor"));
  const auto sampled = Lines();
  EXPECT_GE(sampled.size(), static_cast<size_t>(CallLog::kSampledPerSecond));
  for (int i = 0; i < 100; ++i) Write(log, 3, absl::OkStatus());
  const auto slow = Lines();
  EXPECT_THAT(slow, SizeIs(100));
  EXPECT_THAT(slow, Each(HasSubstr("slow=true")));
  EXPECT_LT(sampled.size(), 1000u) << "unless the test took a hundred seconds";
  EXPECT_EQ(sampled.size() + Skipped(sampled) + Skipped(slow), 1000u)
      << "the log states the number of omitted calls";
  for (int i = 0; i < 100; ++i) Write(log, 0.1, absl::InternalError("broken"));
  const auto faults = Lines();
  EXPECT_THAT(faults, SizeIs(100));
  EXPECT_THAT(faults, Each(HasSubstr("error call ")));
  failpoints_.Advance(absl::Seconds(2));
  Write(log, 0.1);
  EXPECT_THAT(Lines(), SizeIs(1)) << "a second later there is room again";
}

TEST_F(CallLogTest, SlowCallsHaveALargerLimitAndReportSkippedLines) {
  CallLog log({.calls = LogCalls::kSlow, .slow = absl::Seconds(3)});
  constexpr size_t kCalls = 2000;
  size_t lines = 0;
  size_t skipped = 0;
  const auto read = [&] {
    const auto written = Lines();
    lines += written.size();
    skipped += Skipped(written);
  };
  for (size_t i = 0; i < kCalls; ++i) Write(log, 4);
  read();
  EXPECT_GE(lines, size_t{CallLog::kSlowPerSecond});
  EXPECT_LT(lines, kCalls / 2) << "unless the test took ten seconds";
  failpoints_.Advance(absl::Seconds(1));
  Write(log, 4);
  read();
  EXPECT_EQ(lines + skipped, kCalls + 1);
  for (int i = 0; i < 2 * CallLog::kSlowPerSecond; ++i) {
    Write(log, 4, absl::InternalError("broken"));
  }
  EXPECT_THAT(Lines(), SizeIs(2 * CallLog::kSlowPerSecond)) << "faults are no caller's to make";
}

TEST_F(CallLogTest, LinesPerSecondAreLimited) {
  CallLog log({.calls = LogCalls::kSampled, .slow = absl::InfiniteDuration()});
  size_t lines = 0;
  for (int second = 0; second < 5; ++second) {
    failpoints_.Advance(absl::Seconds(1));
    for (int i = 0; i < 50; ++i) Write(log, 0.1);
    lines += Lines().size();
  }
  EXPECT_GE(lines, size_t{5} * CallLog::kSampledPerSecond);
  EXPECT_LT(lines, size_t{10} * CallLog::kSampledPerSecond) << "unless the test took five seconds";
}

TEST_F(CallLogTest, EventsOfCallersAreSampledLikeCalls) {
  CallLog log({.calls = LogCalls::kSampled, .slow = absl::InfiniteDuration()});
  int events = 0;
  for (int i = 0; i < 2000; ++i) events += log.AdmitEvent() ? 1 : 0;
  EXPECT_GE(events, CallLog::kSampledPerSecond);
  EXPECT_LT(events, 1000) << "unless the test took a hundred seconds";
  failpoints_.Advance(absl::Seconds(1));
  EXPECT_TRUE(log.AdmitEvent());
  Write(log, 0.1);
  EXPECT_THAT(Lines(), ElementsAre(HasSubstr(" skipped=" + std::to_string(2000 - events))));
}

TEST_F(CallLogTest, LogCallsSelectsTheLoggedCalls) {
  CallLog all({.calls = LogCalls::kAll, .slow = absl::Seconds(3)});
  for (int i = 0; i < 100; ++i) Write(all, 0.1);
  EXPECT_THAT(Lines(), SizeIs(100));
  CallLog slow({.calls = LogCalls::kSlow, .slow = absl::Seconds(3)});
  Write(slow, 0.1);
  Write(slow, 4);
  EXPECT_THAT(Lines(), SizeIs(1));
  CallLog none({.calls = LogCalls::kNone, .slow = absl::Seconds(3)});
  Write(none, 4);
  Write(none, 4, absl::DataLossError("the checksum differs"));
  EXPECT_THAT(Lines(), SizeIs(1));
}

TEST_F(CallLogTest, LineDescribesTheCall) {
  CallLog log({.calls = LogCalls::kAll, .slow = absl::Seconds(3)});
  ObservedCall call(Method::kRefactorize, "ipv4:192.0.2.1:5", std::nullopt);
  call.SetHandle(kHandle);
  call.SetHandle("not a handle");
  call.tenant = "alice";
  call.request_id = "job-17";
  call.algorithm = "icmpp";
  call.device = "cuda:1";
  call.n = 1024;
  call.received_bytes = 8388608;
  call.sent_bytes = 321;
  call.timings.receive = 0.5;
  call.timings.factor = 1.25;
  call.status = WithReason(absl::ResourceExhaustedError("the queue is full"), kReasonQueueFull);
  log.Write(call, 1.5);
  const auto lines = Lines();
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0],
              AllOf(HasSubstr("info call "), HasSubstr("method=\"Refactorize\""),
                    HasSubstr("code=\"RESOURCE_EXHAUSTED\""), HasSubstr("reason=\"QUEUE_FULL\""),
                    HasSubstr("message=\"the queue is full\""), HasSubstr("seconds=1.5"),
                    HasSubstr("tenant=\"alice\""), HasSubstr("request_id=\"job-17\"")));
  EXPECT_THAT(lines[0],
              AllOf(HasSubstr("handle_prefix=\"bupk7v\""), HasSubstr("algorithm=\"icmpp\""),
                    HasSubstr("device=\"cuda:1\""), HasSubstr("n=1024"),
                    HasSubstr("received_bytes=8388608"), HasSubstr("sent_bytes=321"),
                    HasSubstr("receive_seconds=0.5"), HasSubstr("factor_seconds=1.25"),
                    Not(HasSubstr("queue_seconds")), Not(HasSubstr(kHandle))));
}

}  // namespace
}  // namespace crout::call_log_test
