// SPDX-License-Identifier: Apache-2.0

// Tests that concurrent host jobs never use more threads than cores, and that their results do not
// depend on other jobs, bit by bit.
#include "kernels/host/device/executor.h"

#include <atomic>
#include <filesystem>
#include <new>
#include <thread>
#include <vector>

#include "kernels/host/device/host_device.h"
#include "kernels/host/device/host_info.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"
#include "tests/support/timing/eventually.h"

namespace crout::testing::core_budget_test {
namespace {

TEST(CoreBudgetTest, NeverLeasesMoreCoresThanExist) {
  host::CoreBudget budget(4);
  std::atomic<int> running{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const host::CoreBudget::Lease lease = budget.Acquire(1 + (t + i) % 4);
        EXPECT_LE(running += lease.cores(), 4);
        running -= lease.cores();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(budget.peak(), 4);
  EXPECT_GE(budget.peak(), 1);
}

TEST(CoreBudgetTest, DoesNotStarveLargeRequests) {
  host::CoreBudget budget(2);
  std::atomic<bool> done{false};
  std::thread large;
  std::thread small;
  {
    const host::CoreBudget::Lease held = budget.Acquire(1);
    large = std::thread([&] {
      const host::CoreBudget::Lease both = budget.Acquire(2);
      EXPECT_EQ(budget.waiting(), 1) << "a later request has overtaken";
      done = true;
    });
    EXPECT_TRUE(Eventually([&] { return budget.waiting() == 1; }));
    // One core is free, but an earlier request waits for two.
    small = std::thread([&] {
      budget.Acquire(1);
      EXPECT_TRUE(done);
    });
    EXPECT_TRUE(Eventually([&] { return budget.waiting() == 2; }));
    EXPECT_FALSE(done);
  }
  large.join();
  small.join();
}

TEST(HostExecutorTest, RunsWideWorkOnAllCoresAndNarrowWorkOnOne) {
  host::Executor executor(3);
  int wide = 0;
  int narrow = 0;
  executor.Run(host::Width::kAllCores, [&](int cores) { wide = cores; });
  executor.Run(host::Width::kOneCore, [&](int cores) { narrow = cores; });
  EXPECT_EQ(wide, 3);
  EXPECT_EQ(narrow, 1);
  EXPECT_EQ(executor.budget().peak(), 3);
}

TEST(HostExecutorTest, PropagatesBadAllocAndContinues) {
  host::Executor executor(2);
  for (const host::Width width : {host::Width::kAllCores, host::Width::kOneCore}) {
    EXPECT_THROW(executor.Run(width, [](int) { throw std::bad_alloc(); }), std::bad_alloc);
    int cores = 0;
    executor.Run(width, [&](int given) { cores = given; });
    EXPECT_GT(cores, 0);
  }
}

// Returns the number of threads of this process, including the main thread.
int ThreadCount() {
  int count = 0;
  for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    ++count;
  }
  return count;
}

// Later work must not need new threads, because the system may be unable to create them.
TEST(HostDeviceTest, CreatesTheThreadsOfItsTeamAtStart) {
  constexpr int kCores = 3;
  const host::Executor executor(kCores);
  // Counts this thread and the team of the executor. Threads of earlier tests may still exist.
  EXPECT_GE(ThreadCount(), 1 + kCores);
}

TEST(HostDeviceTest, HasOneTeamForManySubmittingThreads) {
  const int cores = host::AvailableCores();
  const int before = ThreadCount();
  const std::unique_ptr<Device> device = host::MakeDevice({.threads = cores});
  constexpr int kSubmitters = 6;
  constexpr int64_t kWide = 1100;
  const HostMatrix a = RandomMatrix(kWide, kWide, 1);
  std::atomic<int> most{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kSubmitters; ++t) {
    threads.emplace_back([&] {
      JobRunner runner(*device);
      ASSERT_OK(runner.Factor(a, kWide, {}));
      const int now = ThreadCount();
      int seen = most;
      while (now > seen && !most.compare_exchange_weak(seen, now)) {
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // Adds the submitters, the team of the executor (a thread per core), and a monitor thread that
  // LLVM's OpenMP runtime may create.
  EXPECT_LE(most, before + kSubmitters + cores + 1);
}

TEST(HostDeviceTest, GivesTheSameBitsUnderLoad) {
  const std::unique_ptr<Device> device = host::MakeDevice({});
  EXPECT_EQ(device->info().parallelism, host::AvailableCores());
  JobRunner alone(*device);
  const std::vector<int64_t> sizes = {50, 300, 1050};
  std::vector<HostMatrix> expected;
  for (const int64_t n : sizes) {
    ASSERT_OK_AND_ASSIGN(const Factorization factor, alone.Factor(RandomMatrix(n, n, 1), n, {}));
    ASSERT_OK_AND_ASSIGN(HostFactor parts, alone.Download(factor));
    expected.push_back(std::move(parts.lu));
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      JobRunner runner(*device);
      for (int round = 0; round < 3; ++round) {
        const size_t k = (t + round) % sizes.size();
        const HostMatrix a = RandomMatrix(sizes[k], sizes[k], 1);
        ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.Factor(a, sizes[k], {}));
        ASSERT_OK_AND_ASSIGN(const HostFactor parts, runner.Download(factor));
        EXPECT_EQ(parts.lu, expected[k]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace crout::testing::core_budget_test
