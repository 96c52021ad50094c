// SPDX-License-Identifier: Apache-2.0

// Tests guarantees of the multifrontal method that only the host gives.
#include "kernels/host/multifrontal/multifrontal.h"
#include "kernels/sparse/ordering_process.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>

#include "kernels/host/methods.h"
#include "kernels/host/multifrontal/schedule.h"
#include "kernels/util/sanitizers.h"
#include "tests/kernels/sparse_lu_testing.h"
#include "tests/support/matrices/sparse_classes.h"
#include "tests/support/matrices/sparse_gallery.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::host_multifrontal_test {
namespace {

using host::Executor;

constexpr auto kNeverStop = [] { return false; };

struct Factor {
  Analysis analysis;
  NumericSummary summary;
  std::vector<std::byte> block;
  DType dtype;
};

absl::StatusOr<NumericSummary> FactorAgain(Executor& executor, const AnySparse& a, Factor& factor,
                                           StopRequested stop = kNeverStop,
                                           std::vector<int32_t>* postponable = nullptr,
                                           DeviceReport* report = nullptr) {
  factor.block.assign(host::MultifrontalFactorBytes(factor.analysis, factor.dtype),
                      std::byte{0xff});
  std::vector<std::byte> workspace(
      host::MultifrontalWorkspaceBytes(executor, factor.analysis, factor.dtype), std::byte{0xff});
  return host::FactorMultifrontal(executor, factor.analysis, a, factor.dtype, factor.block,
                                  workspace, stop, postponable, report);
}

absl::StatusOr<Factor> MakeFactor(Executor& executor, const AnySparse& a, DType dtype,
                                  const AnalysisOptions& options = {}) {
  Factor factor;
  factor.dtype = dtype;
  absl::StatusOr<Analysis> analysis = Analyze(a, options, kNeverStop);
  if (!analysis.ok()) return analysis.status();
  factor.analysis = *std::move(analysis);
  absl::StatusOr<NumericSummary> summary = FactorAgain(executor, a, factor);
  if (!summary.ok()) return summary.status();
  factor.summary = *summary;
  return factor;
}

absl::Status SolveWith(Executor& executor, const Factor& factor, Op op, const AnyMatrix& b,
                       StopRequested stop = kNeverStop) {
  std::vector<std::byte> workspace(
      host::MultifrontalSolveWorkspaceBytes(executor, factor.analysis, factor.dtype, b.cols),
      std::byte{0xff});
  return host::SolveMultifrontal(executor, factor.analysis, factor.block, op, b, workspace, stop);
}

// Returns the operating system's ids of the threads of this process.
std::set<std::string> ThreadIds() {
  std::set<std::string> ids;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    ids.insert(task.path().filename());
  }
  return ids;
}

class HostMultifrontalTest : public ::testing::TestWithParam<DType> {
 protected:
  Executor executor_{kThreadSanitized ? 1 : 2};
};

// If the number of threads of a team changed with the available memory, the runtime would create
// new threads. libgomp terminates a process that cannot create them.
TEST_P(HostMultifrontalTest, CreatesNoThreadsIfMemoryIsForFewer) {
  if (kThreadSanitized) GTEST_SKIP() << "has no teams";
  constexpr int64_t kM = 18;
  constexpr int kCores = 3;
  Executor three(kCores);
  const PackedSparse a = OfType(GridEntries(kM, 3), kM * kM * kM, GetParam());
  ASSERT_OK_AND_ASSIGN(Factor factor, MakeFactor(three, a.view(), GetParam()));
  const size_t most = host::MultifrontalWorkspaceBytes(three, factor.analysis, factor.dtype);
  const size_t least = host::MultifrontalWorkspaceBytes(three, factor.analysis, factor.dtype, 0);
  ASSERT_LT(least, most);
  const std::set<std::string> before = ThreadIds();
  for (size_t bytes = least; bytes <= most; bytes += (most - least) / (kCores - 1)) {
    std::vector<std::byte> workspace(bytes);
    ASSERT_OK(host::FactorMultifrontal(three, factor.analysis, a.view(), factor.dtype, factor.block,
                                       workspace, kNeverStop));
    EXPECT_EQ(ThreadIds(), before) << bytes << " of " << most << " bytes";
  }
}

TEST_P(HostMultifrontalTest, GivesTheSameBitsOnAnyNumberOfCores) {
  Executor one(1);
  Executor three(kThreadSanitized ? 1 : 3);
  for (const int64_t m : {6, 18}) {
    const PackedSparse a = OfType(GridEntries(m, 3), m * m * m, GetParam());
    ASSERT_OK_AND_ASSIGN(Factor factor, MakeFactor(one, a.view(), GetParam()));
    const std::vector<std::byte> bits = factor.block;
    const ComplexMatrix b = RightHandSides(a.n, 5, GetParam());
    std::vector<std::byte> x;
    for (Executor* const executor : {&one, &executor_, &three}) {
      ASSERT_OK(FactorAgain(*executor, a.view(), factor));
      // The gap between the factors and the interchanges has no defined content.
      const MultifrontalLayout layout(factor.analysis, GetParam());
      const size_t end = factor.analysis.factor_entries() * SizeOf(GetParam());
      EXPECT_EQ(std::memcmp(factor.block.data(), bits.data(), end), 0);
      EXPECT_EQ(std::memcmp(factor.block.data() + layout.pivots, bits.data() + layout.pivots,
                            bits.size() - layout.pivots),
                0);
      HostMatrix real(a.n * 5);
      for (size_t e = 0; e < b.size(); ++e) real[e] = b[e].real();
      std::vector<std::byte> solution =
          IsComplex(GetParam()) ? Packed(b, a.n, 5, GetParam()) : Packed(real, a.n, 5, GetParam());
      ASSERT_OK(
          SolveWith(*executor, factor, Op::kNone, {solution.data(), GetParam(), a.n, 5, a.n}));
      if (x.empty()) x = solution;
      EXPECT_EQ(solution, x);
    }
  }
}

// Synchronizing threads at each of thousands of small fronts would take much longer than their
// arithmetic.
TEST_F(HostMultifrontalTest, FactorsChainOfSmallFrontsByOneThread) {
  AnalysisOptions options;
  options.ordering_program = OrderingProgram();
  const SparseProblem problem = Banded(5000, 10);
  const PackedSparse chain = PackEntries(problem.entries, problem.n, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const Analysis analysis, Analyze(chain.view(), options, kNeverStop));
  const host::Schedule of_chain(analysis);
  EXPECT_GT(of_chain.upper_fronts().size(), 100u);
  for (const int32_t f : of_chain.upper_fronts()) EXPECT_FALSE(of_chain.is_tiled(f));

  const PackedSparse grid = PackEntries(GridEntries(18, 3), 5832, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const Analysis of_grid, Analyze(grid.view(), options, kNeverStop));
  EXPECT_TRUE(host::Schedule(of_grid).is_tiled(of_grid.fronts() - 1));

  // The cost model predicts a speedup only if several cores can process fronts concurrently.
  Executor one(1), eight(8);
  const auto predict = [](Executor& executor, const Analysis& of) {
    return host::MakeMultifrontal(executor)->PredictSeconds(of, DType::kFloat64);
  };
  EXPECT_NEAR(predict(eight, analysis) / predict(one, analysis), 1, 0.01);
  EXPECT_LT(predict(eight, of_grid), 0.5 * predict(one, of_grid));
}

TEST_F(HostMultifrontalTest, ReportsTheNumberOfFinalColumns) {
  Executor one(1);
  const PackedSparse a = OfType(GridEntries(14, 3), 2744, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(Factor factor, MakeFactor(one, a.view(), DType::kFloat64));
  DeviceReport report;
  std::vector<int64_t> reported;
  const auto note = [&] {
    reported.push_back(report.ColumnsDone());
    return false;
  };
  ASSERT_OK(FactorAgain(one, a.view(), factor, note, nullptr, &report));
  EXPECT_LT(reported.front(), a.n);
  EXPECT_TRUE(std::is_sorted(reported.begin(), reported.end()));
  const auto all = std::unique(reported.begin(), reported.end());
  EXPECT_GT(all - reported.begin(), 3) << "after subtrees, and the fronts above them";
  EXPECT_EQ(report.ColumnsDone(), a.n);
}

TEST_F(HostMultifrontalTest, StopsDuringSolves) {
  const PackedSparse a = OfType(GridEntries(14, 3), 2744, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const Factor factor, MakeFactor(executor_, a.view(), DType::kFloat64));
  HostMatrix b(a.n, 1.0);
  const MatrixView<double> view = {b.data(), a.n, 1, a.n};
  EXPECT_THAT(SolveWith(executor_, factor, Op::kNone, view, [] { return true; }),
              FailsWith(absl::StatusCode::kCancelled, "stopped"));
}

INSTANTIATE_TEST_SUITE_P(Types, HostMultifrontalTest, ::testing::ValuesIn(kDTypes),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

}  // namespace
}  // namespace crout::testing::host_multifrontal_test
