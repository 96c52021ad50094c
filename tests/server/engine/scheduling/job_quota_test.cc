// SPDX-License-Identifier: Apache-2.0

// Tests the quotas of queued and running jobs and of device seconds in a scheduler.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/error.h"
#include "server/engine/scheduling/device_scheduler.h"
#include "tests/server/event.h"
#include "tests/support/fakes/fake_device.h"
#include "tests/support/status_matchers.h"
#include "tests/support/timing/failpoints.h"

namespace crout::job_quota_test {
namespace {

using ::testing::Optional;

// A job that waits until it is released.
class HeldJob final : public Job {
 public:
  struct State {
    Event started;
    Event release;
    Event ended;
  };
  explicit HeldJob(std::shared_ptr<State> state) : state_(std::move(state)) {}
  void Run(ExecutionContext& /*context*/) override {
    state_->started.Set();
    state_->release.Wait();
    state_->ended.Set();
  }
  void Drop(absl::Status /*status*/) override { state_->ended.Set(); }

 private:
  const std::shared_ptr<State> state_;
};
using State = HeldJob::State;

class JobQuotaTest : public ::testing::Test {
 protected:
  ~JobQuotaTest() override {
    for (const auto& state : states_) state->release.Set();
  }

  void Start(int streams, const std::string& quotas) {
    auto table = ParseQuotas(quotas);
    ASSERT_OK(table);
    quotas_.Set(*std::move(table));
    auto scheduler = DeviceScheduler::Create(&device_, {.streams = streams, .quotas = &quotas_});
    ASSERT_OK(scheduler);
    scheduler_ = *std::move(scheduler);
  }
  std::shared_ptr<State> Submit(const std::string& tenant, double predicted_seconds = 0,
                                absl::Status* status = nullptr) {
    auto state = std::make_shared<State>();
    states_.push_back(state);
    auto job = std::make_shared<HeldJob>(state);
    job->tenant = tenant;
    job->predicted_seconds = predicted_seconds;
    const absl::Status submitted = scheduler_->Submit(std::move(job));
    if (status != nullptr) {
      *status = submitted;
    } else {
      EXPECT_OK(submitted);
    }
    return state;
  }
  static void End(const std::shared_ptr<State>& state) {
    state->release.Set();
    state->ended.Wait();
  }

  testing::Failpoints failpoints_;
  testing::FakeDevice device_;
  Quotas quotas_;
  std::vector<std::shared_ptr<State>> states_;
  std::unique_ptr<DeviceScheduler> scheduler_;
};

TEST_F(JobQuotaTest, OtherTenantsPassATenantAtItsLimit) {
  Start(/*streams=*/3, "[tenant.a]\nrunning_jobs = 1\n");
  const auto first = Submit("a");
  first->started.Wait();
  const auto second = Submit("a");
  const auto third = Submit("a");
  const auto other = Submit("b");
  other->started.Wait();
  EXPECT_EQ(scheduler_->JobsOf("a").running, 1u);
  EXPECT_EQ(scheduler_->JobsOf("a").queued, 2u);
  EXPECT_FALSE(second->started.IsSet());
  End(first);
  second->started.Wait();
  EXPECT_FALSE(third->started.IsSet());
  End(other);
  End(second);
  third->started.Wait();
  End(third);
}

// The stream that ends the job takes the job of another tenant. An idle stream starts the job that
// the limit held back.
TEST_F(JobQuotaTest, AnIdleStreamStartsAJobThatTheLimitHeldBack) {
  Start(/*streams=*/3, "[tenant.a]\nrunning_jobs = 1\n");
  const auto blocker = Submit("c");
  blocker->started.Wait();
  const auto first = Submit("a", /*predicted_seconds=*/1e3);
  first->started.Wait();
  const auto second = Submit("a", /*predicted_seconds=*/0.5);
  for (int i = 0; i < 20; ++i) End(Submit("b"));
  End(first);
  second->started.Wait();
  End(second);
}

TEST_F(JobQuotaTest, StopDropsJobsThatTheLimitHoldsBack) {
  Start(/*streams=*/1, "[tenant.a]\nrunning_jobs = 1\n");
  const auto first = Submit("a");
  first->started.Wait();
  const auto second = Submit("a");
  second->release.Set();  // it may run in the moment between the end of the first and the stop
  first->release.Set();
  scheduler_->Stop();
  second->ended.Wait();
}

TEST_F(JobQuotaTest, QueuedJobsAreLimited) {
  Start(/*streams=*/1, "[tenant.a]\nqueued_jobs = 2\n");
  const auto running = Submit("b");
  running->started.Wait();
  Submit("a");
  const auto last = Submit("a");
  absl::Status refused;
  Submit("a", 0, &refused);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(ReasonOf(refused), Optional(std::string(kReasonQuotaExceeded)));
  EXPECT_TRUE(RetryAfterOf(refused).has_value());
  Submit("b");
  for (const auto& state : states_) state->release.Set();
  last->ended.Wait();
  Submit("a");
}

TEST_F(JobQuotaTest, MeasuredSecondsAreCharged) {
  Start(/*streams=*/1, "[tenant.a]\ndevice_seconds_per_minute = 10\n");
  const auto job = Submit("a", /*predicted_seconds=*/1000);
  job->started.Wait();
  EXPECT_OK(quotas_.CheckSeconds("a")) << "charged when the job ends";
  failpoints_.Advance(absl::Hours(1));
  job->release.Set();
  // The next job starts after the charge.
  const auto next = Submit("b");
  next->started.Wait();
  EXPECT_GE(quotas_.UsedSeconds("a"), 3000);
  EXPECT_FALSE(quotas_.CheckSeconds("a").ok());
  EXPECT_EQ(quotas_.UsedSeconds("b"), 0);
}

}  // namespace
}  // namespace crout::job_quota_test
