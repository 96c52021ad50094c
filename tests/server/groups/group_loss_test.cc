// SPDX-License-Identifier: Apache-2.0

// Tests the loss of ranks, by signals to real processes.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <utility>
#include <vector>

#include "server/engine/error.h"
#include "tests/server/groups/group_under_test.h"
#include "tests/support/matrices/gallery.h"
#include "tests/support/ratios.h"
#include "tests/support/timing/eventually.h"

namespace crout::testing::group_loss_test {
namespace {

constexpr int64_t kN = 300;
// A job asks a few times whether it must stop before its ranks start, and all the time while it
// waits for them.
constexpr int kPollsOfRunningJob = 20;
using Clock = std::chrono::steady_clock;

class GroupLossTest : public GroupTest<3> {
 protected:
  void SetUp() override {
    GroupTest::SetUp();
    if (IsSkipped()) return;
    AwaitGroup();
    ASSERT_EQ(pids_.size(), 3u);
  }

  void AwaitGroup() {
    ASSERT_TRUE(Eventually([this] { return !(pids_ = group().pids()).empty(); }));
  }

  // Starts a factorization on another thread.
  std::future<absl::Status> StartFactor(std::function<bool()> stop = [] { return false; }) {
    return std::async(std::launch::async, [stop = std::move(stop)] {
      JobRunner runner(device());
      return runner.Factor(RandomMatrix(kN, kN, 1), kN, Scalapack(), stop).status();
    });
  }

  static void ExpectLost(const absl::Status& status, const char* text) {
    EXPECT_THAT(status, FailsWith(absl::StatusCode::kUnavailable, text));
    EXPECT_EQ(ReasonOf(status), kReasonGroupLost);
    EXPECT_TRUE(RetryAfterOf(status));
  }

  // A job that has ended has no rank that could write to its memory.
  void ExpectRanksEnded() {
    for (const pid_t pid : pids_) EXPECT_FALSE(IsAlive(pid)) << pid;
  }

  // Expects that the processes of the last formation are gone, and that a new one works.
  void ExpectFormsAgain() {
    const std::vector<pid_t> old = pids_;
    ASSERT_TRUE(Eventually([&] {
      pids_ = group().pids();
      return !pids_.empty() && pids_ != old;
    }));
    for (const pid_t pid : old) EXPECT_FALSE(IsAlive(pid)) << pid;
    JobRunner runner(device());
    EXPECT_OK(runner.Factor(RandomMatrix(kN, kN, 2), kN, Scalapack()));
  }

  std::vector<pid_t> pids_;
};

TEST_F(GroupLossTest, KilledRankEndsTheJobAtOnce) {
  kill(pids_[2], SIGSTOP);  // the job cannot end
  std::promise<void> running;
  std::future<absl::Status> job = StartFactor([&running, polls = 0]() mutable {
    if (++polls == kPollsOfRunningJob) running.set_value();
    return false;
  });
  running.get_future().wait();
  kill(pids_[1], SIGKILL);
  ExpectLost(job.get(), "ended. It forms again; retry the call");
  ExpectRanksEnded();
  ExpectFormsAgain();
}

TEST_F(GroupLossTest, StoppedRankIsFoundInSixSeconds) {
  const Clock::time_point start = Clock::now();
  kill(pids_[0], SIGSTOP);
  ExpectLost(StartFactor().get(), "sent no heartbeat for 5 s");
  ExpectRanksEnded();
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(8));  // two more, for a busy machine
  ExpectFormsAgain();
}

TEST_F(GroupLossTest, LossWithoutAJobIsRepaired) {
  kill(pids_[0], SIGKILL);
  ExpectFormsAgain();
}

TEST_F(GroupLossTest, CancelledJobEndsItsRanks) {
  kill(pids_[1], SIGSTOP);
  const auto stop = [polls = 0]() mutable { return ++polls > kPollsOfRunningJob; };
  const Clock::time_point start = Clock::now();
  EXPECT_THAT(StartFactor(stop).get(), FailsWith(absl::StatusCode::kCancelled, ""));
  ExpectRanksEnded();
  EXPECT_LT(Clock::now() - start, RankGroup::kSilence);
  ExpectFormsAgain();
}

TEST_F(GroupLossTest, FactorsSurviveTheLoss) {
  JobRunner runner(device());
  const HostMatrix a = RandomMatrix(kN, kN, 3);
  const HostMatrix b = RandomMatrix(kN, 1, 4);
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.Factor(a, kN, Scalapack()));
  kill(pids_[0], SIGKILL);
  ExpectFormsAgain();
  ASSERT_OK_AND_ASSIGN(const Solution solution, runner.Solve(factor, b, 1, {}));
  EXPECT_LT(SolveRatio(a, kN, Op::kNone, solution.x, b, 1, DType::kFloat64), kThreshold);
}

TEST_F(GroupLossTest, FreeingManyFactorsLosesNoRank) {
  constexpr uint64_t kFirst = uint64_t{1} << 62;  // no factor has these numbers
  constexpr uint64_t kFactors = 20'000;           // more than a stream takes while nothing reads it
  kill(pids_[2], SIGSTOP);
  for (uint64_t i = 0; i < kFactors; ++i) group().Forget(kFirst + i);
  kill(pids_[2], SIGCONT);
  EXPECT_OK(StartFactor().get());
  EXPECT_EQ(group().pids(), pids_);
}

TEST(GroupEndTest, DestructorEndsAllProcesses) {
  if (FindHelperProgram("crout-rank").empty()) GTEST_SKIP() << "crout-rank is not built";
  std::vector<pid_t> pids;
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<GroupDevice> device,
                         MakeGroupDevice({.name = "end", .ranks = 2}, host::MakeExecutor(1)));
    pids = device->group().pids();
    ASSERT_EQ(pids.size(), 2u);
  }
  for (const pid_t pid : pids) EXPECT_FALSE(IsAlive(pid)) << pid;
}

TEST(GroupEndTest, ReportsWhyAGroupCannotForm) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<SharedArena> arena, SharedArena::Create(1 << 20));
  EXPECT_THAT(
      RankGroup::Start({.spec = {.name = "bad", .ranks = 2}, .program = "/bin/false"}, *arena)
          .status(),
      FailsWith(absl::StatusCode::kUnavailable, "group:bad cannot be formed: the ranks ended"));
}

}  // namespace
}  // namespace crout::testing::group_loss_test
