// SPDX-License-Identifier: Apache-2.0

// Tests the sparse method of a group of four ranks.
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <complex>
#include <fstream>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/error.h"
#include "tests/server/groups/group_under_test.h"
#include "tests/server/groups/sparse_runner.h"
#include "tests/support/timing/eventually.h"

namespace crout::testing::mumps_test {
namespace {

constexpr int64_t kSmallGrid = 8;
constexpr int64_t kLargeGrid = 20;

// Adds `change` to each value of a float64 matrix, relative to it.
PackedSparse Changed(PackedSparse a, double change) {
  auto* const values =
      reinterpret_cast<double*>(a.bytes.data() + SparseLayout(a.n, a.nonzeros, a.dtype).value);
  for (int64_t e = 0; e < a.nonzeros; ++e) values[e] *= 1 + change * static_cast<double>(e % 5);
  return a;
}

// Returns the memory of these processes that they do not share.
size_t OwnBytes(const std::vector<pid_t>& pids) {
  size_t bytes = 0;
  for (const pid_t pid : pids) {
    std::ifstream file(absl::StrCat("/proc/", pid, "/status"));
    for (std::string word; file >> word;) {
      size_t kibibytes = 0;
      if (word == "RssAnon:" && file >> kibibytes) bytes += 1024 * kibibytes;
    }
  }
  return bytes;
}

class MumpsTest : public GroupTest<4> {
 protected:
  void SetUp() override {
    GroupTest::SetUp();
    if (IsSkipped()) return;
    if (!group().HasMethod("mumps")) GTEST_SKIP() << "crout-rank is built without MUMPS";
    AwaitGroup();
    runner_.emplace(device(), "mumps");
  }

  void AwaitGroup() {
    ASSERT_TRUE(Eventually([this] { return !(pids_ = group().pids()).empty(); }));
  }
  // Kills a rank, and waits until the group has formed again.
  void LoseGroup() {
    const std::vector<pid_t> old = pids_;
    kill(old[2], SIGKILL);
    ASSERT_TRUE(Eventually([&] {
      pids_ = group().pids();
      return !pids_.empty() && pids_ != old;
    }));
  }

  std::vector<pid_t> pids_;
  std::optional<SparseRunner> runner_;
};

TEST_F(MumpsTest, SolvesGridsAsAccuratelyAsTheHost) {
  const std::unique_ptr<Device> host = host::MakeDevice({});
  SparseRunner on_host(*host, "multifrontal");
  for (const DType dtype : kDTypes) {
    for (const int64_t m : {kSmallGrid, kLargeGrid}) {
      if (m == kLargeGrid && dtype != DType::kFloat64) continue;
      SCOPED_TRACE(::testing::Message() << NameOf(dtype) << " " << m);
      const PackedSparse a = Grid(m, dtype);
      ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_->Factor(a));
      EXPECT_EQ(factor.summary.algorithm, "mumps");
      EXPECT_EQ(factor.summary.info, 0);
      EXPECT_EQ(factor.summary.sparse->numeric.perturbed_pivots, 0);
      ASSERT_OK_AND_ASSIGN(const Factorization expected, on_host.Factor(a));
      EXPECT_LT(*factor.summary.quality, 4 * *expected.summary.quality + 1);
      const double u = UnitRoundoff(dtype);
      EXPECT_NEAR(*factor.summary.rcond, *expected.summary.rcond, 0.01 * *expected.summary.rcond);
      EXPECT_NEAR(*factor.summary.det_log_abs, *expected.summary.det_log_abs,
                  static_cast<double>(a.n) * u * std::abs(*expected.summary.det_log_abs));
      EXPECT_NEAR(*factor.summary.det_sign, *expected.summary.det_sign,
                  static_cast<double>(a.n) * u);
      for (const Op op : kOps) {
        for (const int64_t columns : {1, 70}) {
          EXPECT_LE(runner_->ErrorOf(factor, op, columns),
                    4 * on_host.ErrorOf(expected, op, columns) + u);
        }
      }
    }
  }
}

TEST_F(MumpsTest, SolvesMatricesOfAllPatterns) {
  for (const SparseCase& one : SparseCases()) {
    if (one.n == 0) continue;
    const PackedSparse a = OfType(one.entries, one.n, DType::kComplex128);
    for (const MatchingMode matching : {MatchingMode::kAuto, MatchingMode::kOn}) {
      SCOPED_TRACE(::testing::Message() << one.name << " " << static_cast<int>(matching));
      ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_->Factor(a, matching));
      EXPECT_EQ(factor.summary.info, 0);
      for (const Op op : kOps) {
        // Pivots of a hundredth of their columns may cost some digits.
        EXPECT_LT(runner_->ErrorOf(factor, op, 3), 1000 * UnitRoundoff(a.dtype));
        EXPECT_LE(runner_->ErrorOf(factor, op, 3, 2), 16 * UnitRoundoff(a.dtype));
      }
    }
  }
}

TEST_F(MumpsTest, RefactorsNewValuesWithTheSameAnalysis) {
  const PackedSparse a = Grid(kSmallGrid, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const std::shared_ptr<const Analysis> analysis, runner_->AnalysisOf(a));
  ASSERT_OK_AND_ASSIGN(const Factorization first, runner_->Factor(a, analysis));
  ASSERT_OK_AND_ASSIGN(const Factorization second,
                       runner_->Factor(Changed(a, 0.01), analysis, &first));
  EXPECT_EQ(second.summary.sparse->analysis, analysis);
  EXPECT_NE(*second.summary.det_log_abs, *first.summary.det_log_abs);
  for (const Factorization* factor : {&first, &second}) {
    EXPECT_LE(runner_->ErrorOf(*factor, Op::kNone, 2), AcceptedBackwardError(a.dtype, a.n));
  }
}

TEST_F(MumpsTest, ReportsSingularMatrices) {
  std::vector<SparseEntry> entries = GridEntries(kSmallGrid, 3);
  const auto n = static_cast<int32_t>(kSmallGrid * kSmallGrid * kSmallGrid);
  // Two equal rows that no elimination of others changes.
  for (const int32_t i : {n, n + 1}) {
    for (const int32_t j : {n, n + 1}) entries.push_back({i, j, 1.0});
  }
  ASSERT_OK_AND_ASSIGN(const Factorization factor,
                       runner_->Factor(PackEntries(entries, n + 2, DType::kFloat64)));
  EXPECT_GT(factor.summary.info, 0);
  EXPECT_EQ(factor.summary.det_sign, 0);
  EXPECT_EQ(factor.summary.rcond, 0);
}

TEST_F(MumpsTest, RequestsTheMemoryThatMumpsNeeds) {
  const PackedSparse a = Grid(kLargeGrid, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const std::shared_ptr<const Analysis> analysis, runner_->AnalysisOf(a));
  const SparseLu& lu = *runner_->method().lu;
  ExecutionContext& context = runner_->runner().context();
  ASSERT_OK_AND_ASSIGN(const size_t predicted, lu.FactorBytes(*analysis, a.dtype));
  ASSERT_OK_AND_ASSIGN(const size_t beside, lu.WorkspaceBytes(*analysis, a.dtype, 0));
  ASSERT_OK_AND_ASSIGN(const Buffer matrix, Uploaded(context, a.view()));
  ASSERT_OK_AND_ASSIGN(const Buffer workspace, device().memory().Allocate(beside));
  const auto factor_in = [&](const Buffer& block) {
    return lu.Factor(context, *analysis, {matrix.data(), a.dtype, a.n, a.nonzeros}, a.dtype,
                     {block.data(), block.size()}, {workspace.data(), beside},
                     JobRunner::NeverStop(), nullptr);
  };
  ASSERT_OK_AND_ASSIGN(const Buffer small, lu.factor_memory()->Allocate(predicted / 3));
  EXPECT_THAT(factor_in(small).status(),
              FailsWith(absl::StatusCode::kResourceExhausted, "MB reserved on each rank"));
  const std::optional<size_t> sufficient = lu.LargerFactor({small.data(), small.size()});
  ASSERT_TRUE(sufficient.has_value());
  EXPECT_LE(*sufficient, predicted);  // the prediction needs no second attempt
  ASSERT_OK_AND_ASSIGN(const Buffer large, lu.factor_memory()->Allocate(*sufficient));
  EXPECT_OK(factor_in(large));
}

TEST_F(MumpsTest, FreesFactorsInTheRanks) {
  const PackedSparse a = Grid(kLargeGrid, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const std::shared_ptr<const Analysis> analysis, runner_->AnalysisOf(a));
  ASSERT_OK(runner_->Factor(a, analysis));
  size_t held = 0;
  {
    ASSERT_OK_AND_ASSIGN(const Factorization first, runner_->Factor(a, analysis));
    ASSERT_OK_AND_ASSIGN(const Factorization second, runner_->Factor(a, analysis));
    held = OwnBytes(pids_);
  }
  // The ranks free the factors before the next job.
  ASSERT_OK(runner_->Factor(Grid(2, DType::kFloat64)));
  const size_t bytes = analysis->factor_entries() * sizeof(double);
  EXPECT_LT(OwnBytes(pids_) + bytes, held);
}

TEST_F(MumpsTest, FactorsSurviveTheLossOfTheGroup) {
  const PackedSparse a = Grid(kSmallGrid, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_->Factor(a));
  LoseGroup();
  EXPECT_LE(runner_->ErrorOf(factor, Op::kTranspose, 2), AcceptedBackwardError(a.dtype, a.n));
}

TEST_F(MumpsTest, LostRankEndsTheJob) {
  const PackedSparse a = Grid(kSmallGrid, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const std::shared_ptr<const Analysis> analysis, runner_->AnalysisOf(a));
  kill(pids_[1], SIGSTOP);                // the job cannot end
  constexpr int kPollsOfRunningJob = 20;  // see group_loss_test.cc
  std::promise<void> running;
  std::future<absl::Status> job = std::async(std::launch::async, [&] {
    int polls = 0;
    const auto stop = [&] {
      if (++polls == kPollsOfRunningJob) running.set_value();
      return false;
    };
    SparseRunner other(device(), "mumps");
    return other.Factor(a, analysis, nullptr, stop).status();
  });
  running.get_future().wait();
  LoseGroup();
  const absl::Status status = job.get();
  EXPECT_THAT(status, FailsWith(absl::StatusCode::kUnavailable, "It forms again"));
  EXPECT_EQ(ReasonOf(status), kReasonGroupLost);
  EXPECT_OK(runner_->Factor(a, analysis));
}

TEST_F(MumpsTest, RefusesDownloads) {
  EXPECT_FALSE(runner_->method().lu->ProvidesEntries());
  EXPECT_FALSE(runner_->method().lu->SupportsComplements());
}

}  // namespace
}  // namespace crout::testing::mumps_test
