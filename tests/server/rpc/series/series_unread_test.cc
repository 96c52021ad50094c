// SPDX-License-Identifier: Apache-2.0

// Tests SolveSeries with clients that send steps without reading replies: flow control stops them.
// The channel accepts a reply only when the client reads it.
#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/server/rpc/series/series_fixture.h"
#include "tests/server/scrape.h"

namespace crout::testing::series_unread_test {
namespace {

constexpr int kSteps = 8;

class UnreadSeriesTest : public RpcSeriesTest {
 protected:
  void SetUp() override {
    StartServer();
    for (int step = 0; step < kSteps; ++step) matrices_.push_back(Changed(a_, 1e-7, step));
  }

  // A stream that sends all of its steps on a separate thread. The test reads the replies.
  class Sender : public Series {
   public:
    Sender(v1::FactorizationService::Stub& stub, const std::vector<std::vector<double>>& matrices,
           const std::vector<double>& b, absl::Time deadline = absl::InfiniteFuture())
        : Series(stub, "default", deadline), thread_([this, &matrices, &b] {
            for (const std::vector<double>& a : matrices) {
              if (!Send(a, b)) return;
            }
            HalfClose();
          }) {}
    ~Sender() {
      Cancel();  // keeps a failed test from waiting for the stream
      thread_.join();
    }

   private:
    std::thread thread_;
  };

  int StepsBegun() { return failpoints().reached("series.step"); }

  // Returns whether the whole second step has arrived but its job has not begun: the job would end
  // the payload phase of the call.
  bool SecondStepIsHeld() {
    const double both = 2.0 * static_cast<double>((a_.size() + b_.size()) * sizeof(double));
    const std::vector<OpenCall> calls = core().calls.Oldest(1);
    return !calls.empty() && calls.front().phase == "payload" &&
           static_cast<double>(calls.front().received_bytes) >= both;
  }
  void AwaitSecondStep() {
    WaitUntil([this] { return SecondStepIsHeld() || StepsBegun() > 1; }, "a second step");
    EXPECT_EQ(StepsBegun(), 1);
  }
  double Ended(const std::string& code) {
    return SampleOf(core().metrics.Scrape(),
                    "crout_requests_total{code=\"" + code + "\",method=\"SolveSeries\"}")
        .value_or(0);
  }

  std::vector<std::vector<double>> matrices_;
};

TEST_F(UnreadSeriesTest, TheNextStepWaitsUntilTheAnswerIsRead) {
  Sender series(stub(), matrices_, b_);
  AwaitSecondStep();
  for (int step = 0; step < kSteps; ++step) {
    Answer answer;
    ASSERT_TRUE(series.Receive(&answer)) << step;
    ExpectSolved(answer, matrices_[step], b_);
    EXPECT_LE(StepsBegun(), step + 2);
  }
  EXPECT_TRUE(series.Status().ok());
}

// Replies to steps with singular matrices hold no reservation, but the next step must also wait.
TEST_F(UnreadSeriesTest, TheNextStepAlsoWaitsAfterASingularOne) {
  for (std::vector<double>& a : matrices_) std::fill_n(a.begin(), kN, 0.0);
  Sender series(stub(), matrices_, b_);
  AwaitSecondStep();
  for (int step = 0; step < kSteps; ++step) {
    Answer answer;
    ASSERT_TRUE(series.Receive(&answer)) << step;
    EXPECT_FALSE(answer.result.solved());
    EXPECT_LE(StepsBegun(), step + 2);
  }
  EXPECT_TRUE(series.Status().ok());
}

TEST_F(UnreadSeriesTest, AClientThatNeverReadsIsCancelled) {
  Sender series(stub(), matrices_, b_);
  AwaitSecondStep();
  PassTime(absl::Seconds(15));
  EXPECT_EQ(Held().calls, 1u);
  PassTime(absl::Seconds(16));
  EXPECT_EQ(series.Status().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(Idle().host_reserved, 0u);
  EXPECT_EQ(Ended("DEADLINE_EXCEEDED"), 1);
}

TEST_F(UnreadSeriesTest, ACancellationEndsTheWaiting) {
  Sender series(stub(), matrices_, b_);
  AwaitSecondStep();
  series.Cancel();
  EXPECT_EQ(series.Status().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(Idle().host_reserved, 0u);
  EXPECT_EQ(Ended("CANCELLED"), 1);
}

// The memory of the waiting step is freed; the factor of the first step remains.
TEST_F(UnreadSeriesTest, ADeadlineEndsTheWaiting) {
  constexpr absl::Duration kTime = absl::Milliseconds(300);
  const auto refused = [this] { return CallsRefused(core().metrics.Scrape()); };
  std::unique_ptr<Sender> series;
  int begun = 0;  // this and the next two: values before the attempt
  double before = 0;
  double late = 0;
  ASSERT_TRUE(SeenWithin(kTime, [&] {
    series.reset();
    Idle();
    begun = StepsBegun();
    before = refused();
    late = Ended("DEADLINE_EXCEEDED");
    const absl::Time deadline = absl::Now() + kTime;
    series = std::make_unique<Sender>(stub(), matrices_, b_, deadline);
    EXPECT_TRUE(Eventually([&] { return SecondStepIsHeld() || absl::Now() >= deadline; }));
    if (!SecondStepIsHeld() || absl::Now() >= deadline) return false;
    // Reads nothing before the end, because the step would then proceed.
    WaitUntil([&] { return refused() == before + 1; }, "the server to end the call");
    // The attempt fails if the call took so long to arrive that the server counts it as cancelled.
    return Ended("DEADLINE_EXCEEDED") == late + 1;
  }));
  EXPECT_EQ(series->Status().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(Idle().host_reserved, 0u);
  EXPECT_EQ(StepsBegun(), begun + 1);
  const std::vector<v1::Factor> left = Listed();
  ASSERT_FALSE(left.empty());
  Solved solved;
  EXPECT_TRUE(Solve(left.front().handle(), std::vector<double>(kN, 1.0), &solved).ok());
}

}  // namespace
}  // namespace crout::testing::series_unread_test
