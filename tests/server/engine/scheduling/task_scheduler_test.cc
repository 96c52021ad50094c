// SPDX-License-Identifier: Apache-2.0

// Tests the threads of queues that serve tenants in equal parts: the load of a tenant does not
// delay the tasks of another tenant, and priorities order the jobs of one tenant.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/util/failpoint.h"
#include "kernels/util/thread_pool.h"
#include "server/engine/error.h"
#include "server/engine/scheduling/device_scheduler.h"
#include "server/engine/scheduling/task_scheduler.h"
#include "tests/server/event.h"
#include "tests/support/fakes/fake_device.h"
#include "tests/support/timing/failpoints.h"
#include "tests/support/timing/gate.h"

namespace crout::task_scheduler_test {
namespace {

using ::testing::ElementsAre;
using testing::Gate;
using ::testing::Optional;

// A task that passes a gate when it runs.
class TestTask final : public Task {
 public:
  explicit TestTask(Gate& gate) : gate_(gate) {}
  void Run() override {
    gate_.Pass();
    ran.Set();
    ended.Set();
  }
  void Drop(absl::Status status) override {
    dropped = std::move(status);
    ended.Set();
  }

  Event ran;
  Event ended;
  absl::Status dropped;  // status passed to Drop; valid after `ended`

 private:
  Gate& gate_;
};

class TaskSchedulerTest : public ::testing::Test {
 protected:
  static constexpr size_t kThreads = 2;
  static constexpr size_t kCapacity = 64;

  TaskSchedulerTest() { gate_.Close(); }
  ~TaskSchedulerTest() override { gate_.Open(); }

  std::shared_ptr<TestTask> Make(const std::string& tenant, bool is_small, Gate& gate) {
    auto task = std::make_shared<TestTask>(gate);
    task->tenant = tenant;
    task->is_small = is_small;
    return task;
  }
  std::shared_ptr<TestTask> Submit(const std::string& tenant, bool is_small, Gate& gate) {
    auto task = Make(tenant, is_small, gate);
    EXPECT_TRUE(scheduler_.Submit(task).ok());
    return task;
  }
  // Submits large tasks of tenant A that occupy every thread for large tasks and fill the queue.
  std::vector<std::shared_ptr<TestTask>> FillWithLarge() {
    std::vector<std::shared_ptr<TestTask>> tasks;
    for (size_t i = 0; i < kThreads; ++i) tasks.push_back(Submit("A", false, gate_));
    gate_.WaitUntilHeld(kThreads);
    for (size_t i = 0; i < kCapacity; ++i) tasks.push_back(Submit("A", false, gate_));
    return tasks;
  }

  Gate gate_;  // holds the tasks of tenant A
  Gate open_;
  TaskScheduler scheduler_{{.name = "test", .threads = kThreads, .capacity = kCapacity}};
};

TEST_F(TaskSchedulerTest, ASmallTaskRunsWhileLargeTasksOfAnotherTenantFillTheOtherThreads) {
  const auto large = FillWithLarge();
  EXPECT_EQ(scheduler_.load().queue_depth, kCapacity);
  Submit("B", true, open_)->ran.Wait();
  EXPECT_EQ(gate_.held(), static_cast<int>(kThreads)) << "A's tasks go on";
  EXPECT_EQ(gate_.arrivals(), static_cast<int>(kThreads)) << "the small thread took none of them";
}

TEST_F(TaskSchedulerTest, AFullQueueRefusesTheTenantThatFilledItAndServesOthers) {
  const auto large = FillWithLarge();
  const absl::Status refused = scheduler_.Submit(Make("A", false, gate_));
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(ReasonOf(refused), Optional(std::string(kReasonQueueFull)));
  EXPECT_TRUE(RetryAfterOf(refused).has_value());
  // B's task displaces A's last task.
  const auto other = Submit("B", false, open_);
  large.back()->ended.Wait();
  EXPECT_EQ(large.back()->dropped.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(ReasonOf(large.back()->dropped), Optional(std::string(kReasonQueueFull)));
  EXPECT_EQ(scheduler_.load().queue_depth, kCapacity);
  EXPECT_EQ(scheduler_.JobsAhead(other.get()), 0u) << "tasks of A run already";
  gate_.Open();
  other->ran.Wait();
}

TEST_F(TaskSchedulerTest, SmallTasksOfTwoTenantsTakeTurns) {
  const auto large = FillWithLarge();
  Gate small;
  small.Close();
  for (const auto& task : std::vector(large.begin() + kThreads, large.end())) {
    EXPECT_TRUE(scheduler_.Remove(task.get()));
  }
  const auto first = Submit("A", true, small);
  small.WaitUntilHeld();
  std::vector<std::shared_ptr<TestTask>> queued;
  for (int i = 0; i < 8; ++i) queued.push_back(Submit("A", true, small));
  const auto other = Submit("B", true, open_);
  EXPECT_EQ(scheduler_.JobsAhead(other.get()), 0u);
  EXPECT_EQ(scheduler_.JobsAhead(queued[1].get()), 2u);
  small.Open();
  for (const auto& task : queued) task->ran.Wait();  // the tasks use the local gate
}

TEST_F(TaskSchedulerTest, AWaitingTaskIsDroppedAtItsDeadlineWhileAllThreadsAreBusy) {
  const auto large = FillWithLarge();
  EXPECT_TRUE(scheduler_.Remove(large.back().get()));
  const auto late = Make("B", false, open_);
  late->deadline = Task::Clock::now();
  ASSERT_TRUE(scheduler_.Submit(late).ok());
  late->ended.Wait();
  EXPECT_EQ(late->dropped.code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(TaskSchedulerTest, StoppingDropsWaitingTasks) {
  const auto large = FillWithLarge();
  std::thread stop([this] { scheduler_.Stop(); });
  large.back()->ended.Wait();
  EXPECT_THAT(ReasonOf(large.back()->dropped), Optional(std::string(kReasonDraining)));
  gate_.Open();
  stop.join();
  EXPECT_EQ(scheduler_.Submit(Make("B", true, open_)).code(), absl::StatusCode::kUnavailable);
}

// Only the next `threads` threads can be started while an object of this class exists.
class FewThreads final : public FailpointHandler {
 public:
  explicit FewThreads(int threads) : left_(threads) { failpoint_handler = this; }
  ~FewThreads() override { failpoint_handler = nullptr; }
  absl::Status Reach(std::string_view name, std::span<std::byte>) override {
    if (name != "thread.start" || left_-- > 0) return absl::OkStatus();
    return absl::ResourceExhaustedError("no thread left");
  }

 private:
  std::atomic<int> left_;
};

TEST(FewThreadsTest, ComponentsWithoutThreadsFailAndLeaveNoThread) {
  testing::FakeDevice device;
  for (int threads = 0; threads < 3; ++threads) {
    const FewThreads few(threads);
    EXPECT_THROW(TaskScheduler({.name = "test", .threads = 3}), std::system_error);
    EXPECT_THROW((void)DeviceScheduler::Create(&device, {.streams = 3}), std::system_error);
    EXPECT_THROW(ThreadPool(4), std::system_error);
  }
  EXPECT_EQ(device.live_contexts(), 0);
}

// A job that calls `work`.
class TurnJob final : public Job {
 public:
  explicit TurnJob(std::function<void()> work) : work_(std::move(work)) {}
  void Run(ExecutionContext&) override { work_(); }
  void Drop(absl::Status) override {}

 private:
  const std::function<void()> work_;
};

// One stream. A test advances the clock by hours, beside which the real time of the jobs is
// nothing.
class DeviceTurnsTest : public ::testing::Test {
 protected:
  DeviceTurnsTest() {
    auto scheduler = DeviceScheduler::Create(&device_, {.streams = 1, .queue_capacity = 16});
    EXPECT_TRUE(scheduler.ok());
    scheduler_ = *std::move(scheduler);
  }

  void Submit(const std::string& tenant, std::function<void()> work, double predicted_seconds = 0,
              QueuePriority priority = QueuePriority::kNormal) {
    const auto job = std::make_shared<TurnJob>(std::move(work));
    job->tenant = tenant;
    job->priority = priority;
    job->predicted_seconds = predicted_seconds;
    EXPECT_TRUE(scheduler_->Submit(job).ok());
  }
  // Submits a job that waits until the gate opens, and waits until it runs.
  void SubmitBlocker(const std::string& tenant, double predicted_seconds = 0) {
    gate_.Close();
    Submit(
        tenant, [&] { gate_.Pass(); }, predicted_seconds);
    gate_.WaitUntilHeld();
  }
  // Submits a job that runs for `hours` of the test's clock.
  void SubmitNamed(const std::string& name, int hours, double predicted_seconds = 0,
                   QueuePriority priority = QueuePriority::kNormal) {
    Submit(
        name.substr(0, 1),
        [this, name, hours] {
          failpoints_.Advance(absl::Hours(hours));
          order_.push_back(name);
          if (order_.size() == named_) done_.Set();
        },
        predicted_seconds, priority);
    ++named_;
  }
  // Opens the gate, waits until the queued jobs have run and returns their order.
  std::vector<std::string> RunAll() {
    gate_.Open();
    done_.Wait();
    return order_;
  }

  testing::Failpoints failpoints_;
  testing::FakeDevice device_;
  Gate gate_;
  size_t named_ = 0;  // jobs of SubmitNamed(); constant while the gate is open
  std::vector<std::string> order_;
  Event done_;
  std::unique_ptr<DeviceScheduler> scheduler_;
};

TEST_F(DeviceTurnsTest, AShortJobWaitsForNoQueuedJobOfAnotherTenant) {
  SubmitBlocker("a");
  for (const char* name : {"a1", "a2", "a3"}) SubmitNamed(name, /*hours=*/1);
  SubmitNamed("b1", /*hours=*/0);
  EXPECT_THAT(RunAll(), ElementsAre("b1", "a1", "a2", "a3"));
}

TEST_F(DeviceTurnsTest, TenantsGetEqualTimeWhateverIsPredicted) {
  SubmitBlocker("x");
  for (const char* name : {"a1", "a2", "a3"}) SubmitNamed(name, /*hours=*/5);
  // The predictions of b, 5 hours, exceed those of a. Jobs that ended count with their measured
  // time.
  for (const char* name : {"b1", "b2", "b3", "b4", "b5"}) SubmitNamed(name, /*hours=*/2, 18000);
  EXPECT_THAT(RunAll(), ElementsAre("a1", "b1", "b2", "b3", "a2", "b4", "b5", "a3"));
}

TEST_F(DeviceTurnsTest, ALongRunningJobCountsForItsTenant) {
  SubmitBlocker("a", /*predicted_seconds=*/1);
  SubmitNamed("a1", /*hours=*/1);
  for (const char* name : {"b1", "b2", "b3"}) SubmitNamed(name, /*hours=*/1);
  failpoints_.Advance(absl::Minutes(150));
  EXPECT_THAT(RunAll(), ElementsAre("b1", "b2", "b3", "a1"));
}

TEST_F(DeviceTurnsTest, HigherPrioritiesOfATenantStartFirst) {
  constexpr double kHour = 3600;
  SubmitBlocker("x");
  SubmitNamed("a1", /*hours=*/1, kHour, QueuePriority::kBatch);
  SubmitNamed("a2", /*hours=*/1, kHour, QueuePriority::kNormal);
  SubmitNamed("a3", /*hours=*/1, kHour, QueuePriority::kInteractive);
  SubmitNamed("a4", /*hours=*/1, kHour, QueuePriority::kInteractive);
  EXPECT_THAT(RunAll(), ElementsAre("a3", "a4", "a2", "a1"));
}

// A tenant cannot get more time by priorities.
TEST_F(DeviceTurnsTest, ABatchJobStartsBeforeInteractiveJobsOfATenantWithMoreTime) {
  SubmitBlocker("x");
  for (const char* name : {"a1", "a2", "a3"}) {
    SubmitNamed(name, /*hours=*/5, /*predicted_seconds=*/0, QueuePriority::kInteractive);
  }
  for (const char* name : {"b1", "b2", "b3"}) {
    SubmitNamed(name, /*hours=*/2, /*predicted_seconds=*/0, QueuePriority::kBatch);
  }
  EXPECT_THAT(RunAll(), ElementsAre("a1", "b1", "b2", "b3", "a2", "a3"));
}

}  // namespace
}  // namespace crout::task_scheduler_test
