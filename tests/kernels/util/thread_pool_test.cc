// SPDX-License-Identifier: Apache-2.0

#include "kernels/util/thread_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "kernels/util/allocation.h"
#include "tests/support/timing/gate.h"

namespace crout::thread_pool_test {
namespace {

TEST(ThreadPoolTest, RunsTasksInOrderOnOneThread) {
  std::vector<int> order;
  {
    ThreadPool pool(1);
    for (int i = 0; i < 100; ++i) pool.Schedule([&order, i] { order.push_back(i); });
  }
  std::vector<int> expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

TEST(ThreadPoolTest, AlternatesBetweenAccounts) {
  std::vector<std::string> order;
  testing::Gate gate;
  gate.Close();
  {
    ThreadPool pool(1);
    pool.Schedule("a", [&gate] { gate.Pass(); });
    gate.WaitUntilHeld();
    for (int i = 0; i < 3; ++i) {
      pool.Schedule("a", [&order, i] { order.push_back("a" + std::to_string(i)); });
    }
    for (int i = 0; i < 2; ++i) {
      pool.Schedule("b", [&order, i] { order.push_back("b" + std::to_string(i)); });
    }
    pool.Schedule([&order] { order.emplace_back("own"); });
    EXPECT_EQ(pool.waiting(), 6u);
    gate.Open();
  }
  // The first turn of "a" was the task at the gate.
  EXPECT_THAT(order, ::testing::ElementsAre("b0", "own", "a0", "b1", "a1", "a2"));
}

TEST(ThreadPoolTest, DividesTheCostsAmongAccounts) {
  std::vector<std::string> order;
  testing::Gate gate;
  gate.Close();
  {
    ThreadPool pool(1);
    pool.Schedule([&gate] { gate.Pass(); });
    gate.WaitUntilHeld();
    const auto add = [&](const char* account, const char* name, double cost,
                         QueuePriority priority) {
      pool.Schedule(
          account, [&order, name] { order.emplace_back(name); }, cost, priority);
    };
    for (const char* name : {"a0", "a1"}) add("a", name, 3, QueuePriority::kNormal);
    add("b", "late", 1, QueuePriority::kBatch);
    for (const char* name : {"b0", "b1", "b2"}) add("b", name, 1, QueuePriority::kNormal);
    EXPECT_EQ(pool.waiting("b", QueuePriority::kNormal), 3u);
    EXPECT_EQ(pool.waiting("b", QueuePriority::kBatch), 1u);
    EXPECT_EQ(pool.waiting("c", QueuePriority::kNormal), 0u);
    gate.Open();
  }
  EXPECT_THAT(order, ::testing::ElementsAre("a0", "b0", "b1", "b2", "a1", "late"));
}

TEST(ThreadPoolTest, RunsTasksConcurrently) {
  Mutex mutex;
  CondVar changed;
  int arrived = 0;
  ThreadPool pool(3);  // its destructor joins the threads before `mutex` is destroyed
  EXPECT_EQ(pool.thread_count(), 3);
  for (int i = 0; i < 3; ++i) {
    pool.Schedule([&] {  // ends only after all three have begun
      MutexLock lock(&mutex);
      ++arrived;
      changed.SignalAll();
      while (arrived < 3) changed.Wait(&mutex);
    });
  }
  MutexLock lock(&mutex);
  while (arrived < 3) changed.Wait(&mutex);
}

TEST(ThreadPoolTest, DestructorRunsTasksScheduledByTasks) {
  std::atomic<int> runs = 0;
  {
    ThreadPool pool(2);
    for (int i = 0; i < 50; ++i) {
      pool.Schedule([&] {
        ++runs;
        pool.Schedule([&runs] { ++runs; });
      });
    }
  }
  EXPECT_EQ(runs, 100);
}

TEST(ThreadPoolTest, AcceptsMoveOnlyTasks) {
  int result = 0;
  {
    ThreadPool pool(0);  // a pool has at least one thread
    EXPECT_EQ(pool.thread_count(), 1);
    pool.Schedule([&result, owned = std::make_unique<int>(7)] { result = *owned; });
  }
  EXPECT_EQ(result, 7);
}

TEST(ThreadPoolTest, CountsTasksThatRunOutOfMemoryAndContinues) {
  const uint64_t before = AbandonedTasks();
  int runs = 0;
  {
    ThreadPool pool(1);
    pool.Schedule([] { throw std::bad_alloc(); });
    pool.Schedule([&runs] { ++runs; });
  }
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(AbandonedTasks() - before, 1u);
}

}  // namespace
}  // namespace crout::thread_pool_test
