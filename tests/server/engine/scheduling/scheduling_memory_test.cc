// SPDX-License-Identifier: Apache-2.0

// Tests failed allocations while a job is submitted: the job is refused and leaves nothing in the
// queue.
#include <chrono>
#include <memory>
#include <new>

#include "gtest/gtest.h"
#include "kernels/util/clock.h"
#include "server/engine/scheduling/device_scheduler.h"
#include "tests/server/event.h"
#include "tests/support/fakes/fake_device.h"
#include "tests/support/memory/refused_allocations.h"

namespace crout::scheduling_memory_test {
namespace {

using testing::RefuseAfter;
using testing::StopRefusing;
using testing::Threads;

class TestJob final : public Job {
 public:
  void Run(ExecutionContext&) override {
    started.Set();
    go_on.Wait();
  }
  void Drop(absl::Status) override { dropped.Set(); }

  Event started;
  Event go_on;
  Event dropped;
};

TEST(SchedulingMemoryTest, ASubmissionSucceedsOrChangesNothing) {
  testing::FakeDevice device;
  auto made = DeviceScheduler::Create(&device, {.streams = 1, .queue_capacity = 16});
  ASSERT_TRUE(made.ok());
  DeviceScheduler& scheduler = **made;
  const auto blocker = std::make_shared<TestJob>();
  ASSERT_TRUE(scheduler.Submit(blocker).ok());
  blocker->started.Wait();
  const auto job = std::make_shared<TestJob>();
  job->deadline = SteadyNow() + std::chrono::hours(1);
  job->predicted_seconds = 5;
  int refused = 0;
  for (bool whole = false; !whole;) {
    RefuseAfter(refused, Threads::kThis);
    try {
      (void)scheduler.Submit(job);
    } catch (const std::bad_alloc&) {
    }
    whole = !StopRefusing();
    if (whole) break;
    ++refused;
    EXPECT_EQ(scheduler.load().queue_depth, 0u);
    EXPECT_LT(scheduler.load().work_seconds, job->predicted_seconds);
    EXPECT_FALSE(scheduler.Remove(job.get()));
    // The thread that drops late jobs must not find refused jobs.
    const auto late = std::make_shared<TestJob>();
    late->deadline = SteadyNow();
    ASSERT_TRUE(scheduler.Submit(late).ok());
    late->dropped.Wait();
  }
  EXPECT_GT(refused, 0);
  EXPECT_EQ(scheduler.load().queue_depth, 1u);
  EXPECT_TRUE(scheduler.Remove(job.get()));
  blocker->go_on.Set();
}

}  // namespace
}  // namespace crout::scheduling_memory_test
