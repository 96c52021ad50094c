// SPDX-License-Identifier: Apache-2.0

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/error.h"
#include "server/engine/scheduling/device_scheduler.h"
#include "tests/server/event.h"
#include "tests/support/fakes/fake_device.h"

namespace crout::device_scheduler_test {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::Optional;

// A job that records its start and its end. `gone` is set when the job is destroyed.
class TestJob final : public Job {
 public:
  struct Record {
    Event started;
    Event ended;  // the job ran or was dropped
    Event gone;
    std::atomic<int> runs = 0;
    std::atomic<int> drops = 0;
    absl::Status status;  // passed to Drop; valid after `ended`
  };

  explicit TestJob(std::shared_ptr<Record> record,
                   std::function<void(ExecutionContext&)> work = nullptr)
      : record_(std::move(record)), work_(std::move(work)) {}
  ~TestJob() override { record_->gone.Set(); }

  void Run(ExecutionContext& context) override {
    ++record_->runs;
    record_->started.Set();
    if (work_) work_(context);
    record_->ended.Set();
  }
  void Drop(absl::Status status) override {
    ++record_->drops;
    record_->status = std::move(status);
    record_->ended.Set();
  }

 private:
  const std::shared_ptr<Record> record_;
  const std::function<void(ExecutionContext&)> work_;
};

using Record = TestJob::Record;

class DeviceSchedulerTest : public ::testing::Test {
 protected:
  ~DeviceSchedulerTest() override { release_.Set(); }

  void Start(int streams, size_t capacity = 16) {
    auto scheduler =
        DeviceScheduler::Create(&device_, {.streams = streams, .queue_capacity = capacity});
    ASSERT_TRUE(scheduler.ok());
    scheduler_ = *std::move(scheduler);
  }

  std::shared_ptr<Record> Submit(std::function<void(ExecutionContext&)> work = nullptr,
                                 Job::Clock::time_point deadline = Job::Clock::time_point::max(),
                                 double predicted_seconds = 0) {
    auto record = std::make_shared<Record>();
    auto job = std::make_shared<TestJob>(record, std::move(work));
    job->deadline = deadline;
    job->predicted_seconds = predicted_seconds;
    last_ = job.get();
    last_status_ = scheduler_->Submit(std::move(job));
    return record;
  }

  // Submits a job that occupies a stream until release_ is set, and waits until it runs.
  std::shared_ptr<Record> SubmitBlocker(double predicted_seconds = 0) {
    auto record = Submit([this](ExecutionContext&) { release_.Wait(); },
                         Job::Clock::time_point::max(), predicted_seconds);
    record->started.Wait();
    return record;
  }

  testing::FakeDevice device_;
  Event release_;
  const Job* last_ = nullptr;  // the last submitted job
  absl::Status last_status_;
  std::unique_ptr<DeviceScheduler> scheduler_;
};

TEST_F(DeviceSchedulerTest, RunsInTheOrderOfSubmission) {
  Start(/*streams=*/1);
  auto blocker = SubmitBlocker();
  std::vector<int> order;
  std::vector<std::shared_ptr<Record>> records;
  for (int i = 0; i < 4; ++i) {
    records.push_back(Submit([&order, i](ExecutionContext&) { order.push_back(i); }));
  }
  release_.Set();
  records.back()->ended.Wait();
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3));
}

TEST_F(DeviceSchedulerTest, RunsOneJobPerStreamConcurrentlyOnSeparateContexts) {
  Start(/*streams=*/3);
  Mutex mutex;
  std::set<ExecutionContext*> contexts;
  Event all;
  std::vector<std::shared_ptr<Record>> records;
  for (int i = 0; i < 3; ++i) {
    records.push_back(Submit([&](ExecutionContext& context) {
      {
        MutexLock lock(&mutex);
        contexts.insert(&context);
        if (contexts.size() == 3) all.Set();
      }
      all.Wait();  // returns only if all three run at once
    }));
  }
  for (auto& record : records) record->ended.Wait();
  EXPECT_EQ(contexts.size(), 3u);
}

TEST_F(DeviceSchedulerTest, RefusesWhenTheQueueIsFull) {
  Start(/*streams=*/1, /*capacity=*/2);
  SubmitBlocker(/*predicted_seconds=*/0);
  Submit(nullptr, Job::Clock::time_point::max(), 3);
  Submit(nullptr, Job::Clock::time_point::max(), 4);
  ASSERT_TRUE(last_status_.ok());
  auto refused = Submit();
  EXPECT_EQ(last_status_.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(ReasonOf(last_status_), Optional(std::string(kReasonQueueFull)));
  EXPECT_THAT(RetryAfterOf(last_status_), Optional(7.0));
  EXPECT_TRUE(refused->gone.IsSet());
  EXPECT_EQ(refused->runs + refused->drops, 0);
  EXPECT_EQ(scheduler_->CheckRoom(""), last_status_);
  // A tenant with two jobs less gets the place of a job.
  EXPECT_TRUE(scheduler_->CheckRoom("other").ok());
}

TEST_F(DeviceSchedulerTest, DropsAtTheDeadlineWhileEveryWorkerIsBusy) {
  Start(/*streams=*/1);
  auto blocker = SubmitBlocker();
  // After the first drop, the thread that drops late jobs waits. The next deadlines must wake it.
  Submit(nullptr, Job::Clock::now())->gone.Wait();
  const auto now = Job::Clock::now();
  auto later = Submit(nullptr, now + milliseconds(40));
  auto earlier = Submit(nullptr, now + milliseconds(5));
  auto far = Submit(nullptr, now + hours(24 * 365 * 200));
  earlier->ended.Wait();
  EXPECT_GE(Job::Clock::now(), now + milliseconds(5));
  EXPECT_EQ(earlier->status.code(), absl::StatusCode::kDeadlineExceeded);
  later->ended.Wait();
  EXPECT_EQ(later->status.code(), absl::StatusCode::kDeadlineExceeded);
  later->gone.Wait();
  earlier->gone.Wait();
  EXPECT_FALSE(blocker->ended.IsSet());
  EXPECT_EQ(scheduler_->load().queue_depth, 1u);
  release_.Set();
  far->ended.Wait();
  EXPECT_EQ(far->runs, 1);
  EXPECT_EQ(later->runs + earlier->runs, 0);
}

TEST_F(DeviceSchedulerTest, DoesNotRunAJobAfterItsDeadline) {
  Start(/*streams=*/1);
  auto late = Submit(nullptr, Job::Clock::now() - milliseconds(1));
  late->ended.Wait();
  EXPECT_EQ(late->runs, 0);
  EXPECT_EQ(late->status.code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(DeviceSchedulerTest, ARemovedJobNeverRuns) {
  Start(/*streams=*/1);
  auto blocker = SubmitBlocker();
  const Job* running = last_;
  auto removed = Submit(nullptr, Job::Clock::now() + hours(1));
  const Job* queued = last_;
  EXPECT_FALSE(scheduler_->Remove(running));
  EXPECT_TRUE(scheduler_->Remove(queued));
  EXPECT_TRUE(removed->gone.IsSet());
  EXPECT_FALSE(scheduler_->Remove(queued));
  EXPECT_EQ(scheduler_->load().queue_depth, 0u);
  release_.Set();
  auto after = Submit();
  after->ended.Wait();
  EXPECT_EQ(removed->runs + removed->drops, 0);
}

TEST_F(DeviceSchedulerTest, CountsTheJobsAhead) {
  Start(/*streams=*/1);
  SubmitBlocker();
  EXPECT_EQ(scheduler_->JobsAhead(last_), 0u);
  Submit();
  const Job* first = last_;
  Submit();
  const Job* second = last_;
  EXPECT_EQ(scheduler_->JobsAhead(first), 0u);
  EXPECT_EQ(scheduler_->JobsAhead(second), 1u);
  scheduler_->Remove(first);
  EXPECT_EQ(scheduler_->JobsAhead(second), 0u);
}

TEST_F(DeviceSchedulerTest, ReleasesAJobAfterItRan) {
  Start(/*streams=*/1);
  Submit()->gone.Wait();  // hangs if the scheduler keeps a reference
}

TEST_F(DeviceSchedulerTest, ReportsItsLoad) {
  Start(/*streams=*/3);
  EXPECT_EQ(scheduler_->load().streams, 3);
  EXPECT_EQ(scheduler_->load().streams_busy, 0);
  auto first = SubmitBlocker(/*predicted_seconds=*/1000);
  EXPECT_EQ(scheduler_->load().streams_busy, 1);
  EXPECT_EQ(scheduler_->load().backlog_seconds, 0) << "a stream is idle";
  SubmitBlocker(/*predicted_seconds=*/500);
  Submit(nullptr, Job::Clock::time_point::max(), 500);
  const DeviceScheduler::Load load = scheduler_->load();
  EXPECT_EQ(load.streams_busy, 2);
  EXPECT_EQ(load.queue_depth, 1u);
  EXPECT_LE(load.backlog_seconds, 2000.0 / 3);  // the elapsed time is subtracted
  EXPECT_GT(load.backlog_seconds, 500.0 / 3);
}

TEST_F(DeviceSchedulerTest, LongJobsLeaveAStreamForSmallJobs) {
  Start(/*streams=*/2);
  SubmitBlocker(/*predicted_seconds=*/10);
  const auto second = Submit(nullptr, Job::Clock::time_point::max(), /*predicted_seconds=*/10);
  Submit()->gone.Wait();
  EXPECT_EQ(second->runs, 0);
  EXPECT_EQ(scheduler_->load().queue_depth, 1u);
  release_.Set();
  second->ended.Wait();
  EXPECT_EQ(second->runs, 1);
}

TEST_F(DeviceSchedulerTest, ALongJobStartsWhicheverStreamItWakes) {
  Start(/*streams=*/2);
  for (int i = 0; i < 500; ++i) {
    Submit(nullptr, Job::Clock::time_point::max(), /*predicted_seconds=*/10)->gone.Wait();
  }
}

TEST_F(DeviceSchedulerTest, StopDropsTheQueueAndWaitsForRunningJobs) {
  Start(/*streams=*/1);
  auto blocker = SubmitBlocker();
  auto queued = Submit();
  std::thread stopper([this] { scheduler_->Stop(); });
  queued->ended.Wait();
  EXPECT_EQ(queued->status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(ReasonOf(queued->status), Optional(std::string(kReasonDraining)));
  Submit();
  EXPECT_EQ(last_status_.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(ReasonOf(last_status_), Optional(std::string(kReasonDraining)));
  EXPECT_FALSE(blocker->ended.IsSet());
  release_.Set();
  stopper.join();
  EXPECT_TRUE(blocker->ended.IsSet());
  EXPECT_EQ(queued->runs, 0);
  scheduler_->Stop();  // the second call has no effect
}

TEST_F(DeviceSchedulerTest, AFencedDeviceDropsItsQueueAndRefuses) {
  Start(/*streams=*/1);
  auto failing = Submit([this](ExecutionContext&) {
    release_.Wait();
    device_.BreakDown();
  });
  auto queued = Submit();
  release_.Set();
  queued->ended.Wait();
  EXPECT_EQ(queued->runs, 0);
  EXPECT_EQ(queued->status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(ReasonOf(queued->status), Optional(std::string(kReasonDeviceLost)));
  Submit();
  EXPECT_EQ(last_status_.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(ReasonOf(last_status_), Optional(std::string(kReasonDeviceLost)));
}

TEST_F(DeviceSchedulerTest, RequiresAllItsContexts) {
  EXPECT_EQ(DeviceScheduler::Create(&device_, {.streams = -1}).status().code(),
            absl::StatusCode::kInvalidArgument);
  device_.BreakDown();
  EXPECT_EQ(DeviceScheduler::Create(&device_, {.streams = 3}).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(device_.live_contexts(), 0);
}

// Submissions, removals and deadlines occur concurrently. Each job must end exactly once.
TEST_F(DeviceSchedulerTest, EveryJobEndsOnceUnderContention) {
  Start(/*streams=*/3, /*capacity=*/32);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, &wrong, t] {
      for (int i = 0; i < 2000; ++i) {
        auto record = std::make_shared<Record>();
        auto job = std::make_shared<TestJob>(record);
        if (i % 3 == 0) job->deadline = Job::Clock::now() + std::chrono::microseconds(20 * t);
        const Job* name = job.get();
        if (!scheduler_->Submit(std::move(job)).ok()) continue;
        const bool removed = i % 2 == 0 && scheduler_->Remove(name);
        record->gone.Wait();
        if (record->runs + record->drops + (removed ? 1 : 0) != 1) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(scheduler_->load().queue_depth, 0u);
  EXPECT_EQ(scheduler_->load().backlog_seconds, 0);
}

}  // namespace
}  // namespace crout::device_scheduler_test
