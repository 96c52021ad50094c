// SPDX-License-Identifier: Apache-2.0

// Tests the dynamic batching of jobs: which jobs form a batch, when it runs, and how a single job
// of a batch ends early.
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/util/clock.h"
#include "server/engine/scheduling/device_scheduler.h"
#include "tests/server/event.h"
#include "tests/support/fakes/fake_device.h"

namespace crout::dynamic_batch_scheduling_test {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class NamedJob final : public Job {
 public:
  explicit NamedJob(std::string name, std::function<void()> work = nullptr)
      : name_(std::move(name)), work_(std::move(work)) {}

  void Run(ExecutionContext&) override {
    started.Set();
    if (work_) work_();
    ended.Set();
  }
  void Drop(absl::Status status) override {
    dropped = std::move(status);
    ended.Set();
  }
  const std::string& name() const { return name_; }

  Event started;
  Event ended;
  absl::Status dropped;

 private:
  const std::string name_;
  const std::function<void()> work_;
};

using Names = std::vector<std::string>;

// Records the jobs of each batch and the time that they waited.
class Recorder final : public JobBatcher {
 public:
  void Run(ExecutionContext&, std::span<const std::shared_ptr<Job>> jobs,
           Job::Clock::duration waited) override {
    {
      MutexLock lock(&mutex_);
      batches_.emplace_back();
      for (const auto& job : jobs) batches_.back().push_back(Named(*job).name());
      waited_.push_back(waited);
    }
    for (const auto& job : jobs) Named(*job).ended.Set();
  }
  std::vector<Names> batches() const {
    MutexLock lock(&mutex_);
    return batches_;
  }
  std::vector<Job::Clock::duration> waited() const {
    MutexLock lock(&mutex_);
    return waited_;
  }

 private:
  static NamedJob& Named(Job& job) { return static_cast<NamedJob&>(job); }

  mutable Mutex mutex_;
  std::vector<Names> batches_ ABSL_GUARDED_BY(mutex_);
  std::vector<Job::Clock::duration> waited_ ABSL_GUARDED_BY(mutex_);
};

class DynamicBatchSchedulingTest : public ::testing::Test {
 protected:
  ~DynamicBatchSchedulingTest() override { release_.Set(); }

  void Start(int streams, size_t max_batch_jobs, microseconds delay = microseconds(0)) {
    auto scheduler =
        DeviceScheduler::Create(&device_, {.streams = streams,
                                           .queue_capacity = 16,
                                           .max_batch_jobs = max_batch_jobs,
                                           .max_batch_delay = absl::FromChrono(delay)});
    ASSERT_TRUE(scheduler.ok());
    scheduler_ = *std::move(scheduler);
  }

  // Submits a job that occupies a stream until release_ is set, and waits until it runs.
  std::shared_ptr<NamedJob> Block() {
    auto job = std::make_shared<NamedJob>("blocker", [this] { release_.Wait(); });
    EXPECT_TRUE(scheduler_->Submit(job).ok());
    job->started.Wait();
    return job;
  }
  std::shared_ptr<NamedJob> Submit(const std::string& name, int group = 0,
                                   Job::Clock::time_point deadline = Job::Clock::time_point::max(),
                                   std::string tenant = "") {
    auto job = std::make_shared<NamedJob>(name);
    job->batcher = &recorder_;
    job->group = group;
    job->deadline = deadline;
    job->tenant = std::move(tenant);
    EXPECT_TRUE(scheduler_->Submit(job).ok());
    return job;
  }
  std::shared_ptr<NamedJob> SubmitAlone(const std::string& name) {
    auto job = std::make_shared<NamedJob>(name);
    EXPECT_TRUE(scheduler_->Submit(job).ok());
    return job;
  }

  testing::FakeDevice device_;
  Event release_;
  Recorder recorder_;
  std::unique_ptr<DeviceScheduler> scheduler_;
};

TEST_F(DynamicBatchSchedulingTest, AnIdleDeviceStartsAtOnce) {
  Start(2, 8, hours(1));
  Submit("a")->ended.Wait();
  EXPECT_THAT(recorder_.batches(), ElementsAre(ElementsAre("a")));
  EXPECT_THAT(recorder_.waited(), ElementsAre(microseconds(0)));
}

TEST_F(DynamicBatchSchedulingTest, QueuedJobsOfAGroupRunTogether) {
  Start(1, 8);
  Block();
  Submit("a");
  Submit("B", 1);
  Submit("b");
  SubmitAlone("x");
  auto last = Submit("c");
  auto other = Submit("C", 1);
  release_.Set();
  last->ended.Wait();
  other->ended.Wait();
  EXPECT_THAT(recorder_.batches(), ElementsAre(ElementsAre("a", "b", "c"), ElementsAre("B", "C")));
}

TEST_F(DynamicBatchSchedulingTest, TenantsTakeTurnsWhenABatchIsFull) {
  Start(1, 3);
  Block();
  const auto none = Job::Clock::time_point::max();
  for (const char* name : {"a1", "a2", "a3", "a4"}) Submit(name, 0, none, "a");
  Submit("b1", 0, none, "b");
  auto last = Submit("c1", 0, none, "c");
  release_.Set();
  last->ended.Wait();
  scheduler_->Stop();
  ASSERT_THAT(recorder_.batches(), ::testing::Not(IsEmpty()));
  EXPECT_THAT(recorder_.batches()[0], ElementsAre("a1", "b1", "c1"));
}

TEST_F(DynamicBatchSchedulingTest, ABatchWaitsForMoreJobsWhileAJobRuns) {
  Start(2, 3, hours(1));
  Block();
  auto first = Submit("a");
  auto second = Submit("b");
  // A job that cannot join the batch does not wait for it.
  SubmitAlone("x")->ended.Wait();
  EXPECT_THAT(recorder_.batches(), IsEmpty());
  Submit("c")->ended.Wait();  // completes the batch
  EXPECT_THAT(recorder_.batches(), ElementsAre(ElementsAre("a", "b", "c")));
  EXPECT_GT(recorder_.waited()[0], microseconds(0));
}

TEST_F(DynamicBatchSchedulingTest, NoJobWaitsWhileAStreamIsIdle) {
  Start(2, 8, hours(1));
  Block();
  auto first = Submit("a");
  auto second = Submit("b");
  release_.Set();
  first->ended.Wait();
  second->ended.Wait();
  EXPECT_THAT(recorder_.batches(), ElementsAre(ElementsAre("a", "b")));
}

TEST_F(DynamicBatchSchedulingTest, TheWindowEndsByItself) {
  Start(2, 8, microseconds(200));
  Block();
  Submit("a")->ended.Wait();
  EXPECT_THAT(recorder_.batches(), ElementsAre(ElementsAre("a")));
}

TEST_F(DynamicBatchSchedulingTest, TheWindowEndsWhenTheOnlyActiveWorkerTookAnEarlierJob) {
  Start(3, 8, microseconds(200));
  Block();
  for (int i = 0; i < 50; ++i) {
    auto batched = Submit("a");
    auto alone = SubmitAlone("x");
    batched->ended.Wait();
    alone->ended.Wait();
  }
}

TEST_F(DynamicBatchSchedulingTest, AWaitingJobCanBeRemovedOrMissItsDeadline) {
  Start(2, 8, hours(1));
  Block();
  auto taken_back = Submit("a");
  auto late = Submit("b", 0, SteadyNow() + std::chrono::milliseconds(20));
  auto stays = Submit("c");
  EXPECT_TRUE(scheduler_->Remove(taken_back.get()));
  late->ended.Wait();
  EXPECT_EQ(late->dropped.code(), absl::StatusCode::kDeadlineExceeded);
  release_.Set();
  stays->ended.Wait();
  EXPECT_THAT(recorder_.batches(), ElementsAre(ElementsAre("c")));
}

TEST_F(DynamicBatchSchedulingTest, TheWaitForACancelledJobDoesNotCount) {
  Start(2, 8, hours(1));
  Block();
  auto cancelled = Submit("a");
  SubmitAlone("x")->ended.Wait();  // The idle stream saw "a", and waits for more jobs.
  EXPECT_TRUE(scheduler_->Remove(cancelled.get()));
  SubmitAlone("y")->ended.Wait();  // The idle stream saw that nothing waits.
  release_.Set();
  while (scheduler_->load().streams_busy > 0) std::this_thread::yield();
  Submit("b")->ended.Wait();
  EXPECT_THAT(recorder_.batches(), ElementsAre(ElementsAre("b")));
  EXPECT_THAT(recorder_.waited(), ElementsAre(microseconds(0)));
}

TEST_F(DynamicBatchSchedulingTest, AFencedDeviceDropsEachJob) {
  Start(1, 8);
  Block();
  auto first = Submit("b");
  auto second = Submit("c");
  device_.BreakDown();
  release_.Set();
  first->ended.Wait();
  second->ended.Wait();
  EXPECT_EQ(first->dropped.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(second->dropped.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(recorder_.batches(), IsEmpty());
}

TEST_F(DynamicBatchSchedulingTest, StoppingDropsWaitingJobs) {
  Start(2, 8, hours(1));
  Block();
  auto waiting = Submit("a");
  std::thread stop([&] { scheduler_->Stop(); });
  waiting->ended.Wait();
  EXPECT_EQ(waiting->dropped.code(), absl::StatusCode::kUnavailable);
  release_.Set();
  stop.join();
}

}  // namespace
}  // namespace crout::dynamic_batch_scheduling_test
