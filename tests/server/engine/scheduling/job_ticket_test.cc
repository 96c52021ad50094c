// SPDX-License-Identifier: Apache-2.0

#include "server/engine/scheduling/job_scheduler.h"

#include <chrono>
#include <memory>

#include "gtest/gtest.h"
#include "server/engine/scheduling/device_scheduler.h"
#include "tests/server/event.h"
#include "tests/support/fakes/fake_device.h"

namespace crout::job_ticket_test {
namespace {

using std::chrono::seconds;

// A job that runs until it is released.
class HeldJob final : public Job {
 public:
  void Run(ExecutionContext& /*context*/) override {
    started.Set();
    release.Wait();
  }
  void Drop(absl::Status /*status*/) override { dropped.Set(); }

  Event started;
  Event release;
  Event dropped;
};

class JobTicketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto scheduler = DeviceScheduler::Create(&device_, {.streams = 1, .queue_capacity = 2});
    ASSERT_TRUE(scheduler.ok()) << scheduler.status();
    scheduler_ = *std::move(scheduler);
    ASSERT_TRUE(scheduler_->Submit(running_).ok());
    running_->started.Wait();
  }
  void TearDown() override { running_->release.Set(); }

  const JobTicket::Clock::time_point start_ = JobTicket::Clock::now();
  const std::shared_ptr<HeldJob> running_ = std::make_shared<HeldJob>();
  testing::FakeDevice device_;
  std::unique_ptr<DeviceScheduler> scheduler_;
  JobTicket ticket_;
};

TEST_F(JobTicketTest, AnAbandonedJobLeavesTheQueue) {
  JobTicket other;
  ASSERT_TRUE(other.Submit(*scheduler_, std::make_shared<HeldJob>()).ok());
  ASSERT_TRUE(ticket_.Submit(*scheduler_, std::make_shared<HeldJob>()).ok());
  EXPECT_EQ(ticket_.JobsAhead(), 1u);
  other.Abandon(start_);
  EXPECT_EQ(ticket_.JobsAhead(), 0u);
  EXPECT_EQ(scheduler_->load().queue_depth, 1u);
  ticket_.Abandon(start_);
  EXPECT_EQ(scheduler_->load().queue_depth, 0u);
}

TEST_F(JobTicketTest, ARefusedJobIsDestroyed) {
  JobTicket others[2];
  for (JobTicket& other : others) {
    ASSERT_TRUE(other.Submit(*scheduler_, std::make_shared<HeldJob>()).ok());
  }
  const auto job = std::make_shared<HeldJob>();
  EXPECT_EQ(ticket_.Submit(*scheduler_, job).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(job.use_count(), 1);
  EXPECT_EQ(ticket_.JobsAhead(), 0u);
  for (JobTicket& other : others) other.Abandon(start_);
}

TEST_F(JobTicketTest, AStartedJobIsNotRemoved) {
  ASSERT_TRUE(ticket_.Submit(*scheduler_, running_).ok());
  ticket_.ReleaseJob();
  ticket_.Abandon(start_);
  EXPECT_EQ(scheduler_->load().queue_depth, 1u);
}

TEST_F(JobTicketTest, CountsAbandonedWorkUntilItsLastPieceEnds) {
  ticket_.BeginWork();
  ticket_.BeginWork();
  ticket_.Abandon(start_ + seconds(10));
  ticket_.Abandon(start_ + seconds(20));
  EXPECT_EQ(ticket_.EndWork(start_ + seconds(25)), 0);
  EXPECT_TRUE(ticket_.working());
  EXPECT_EQ(ticket_.EndWork(start_ + seconds(40)), 30);
  EXPECT_FALSE(ticket_.working());
}

TEST_F(JobTicketTest, WorkForAClientIsNotCountedAsWasted) {
  ticket_.BeginWork();
  EXPECT_EQ(ticket_.EndWork(start_ + seconds(5)), 0);
  ticket_.Abandon(start_ + seconds(6));
  ticket_.BeginWork();
  EXPECT_EQ(ticket_.EndWork(start_ + seconds(7)), 0);
}

}  // namespace
}  // namespace crout::job_ticket_test
