// What the multifrontal method promises on the host alone.
#include "kernels/host/multifrontal/multifrontal.h"

#include <algorithm>
#include <cstring>

#include "tests/kernels/sparse_lu_testing.h"
#include "tests/support/sanitizers.h"
#include "tests/support/sparse_gallery.h"
#include "tests/support/status_matchers.h"

namespace crout::testing {
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

class HostMultifrontalTest : public ::testing::TestWithParam<DType> {
 protected:
  Executor executor_{kThreadSanitized ? 1 : 2};
};

// A factor with kept unknowns takes their Schur complement for the identity: with
// b = A x - (0, S x2 - x2) its solve gives x.
TEST_P(HostMultifrontalTest, SolvesBesideKeptUnknowns) {
  constexpr int64_t kM = 9;
  constexpr int64_t kN = kM * kM * kM;
  constexpr int64_t kKept = 60;
  const PackedSparse a = OfType(GridEntries(kM, 3), kN, GetParam());
  AnalysisOptions options;
  for (int32_t i = 0; i < kKept; ++i) options.keep.push_back((i * 37 + 5) % kN);
  ASSERT_OK_AND_ASSIGN(const Factor factor, MakeFactor(executor_, a.view(), GetParam(), options));
  const Analysis& analysis = factor.analysis;
  ASSERT_EQ(analysis.kept, kKept);
  DispatchDType(GetParam(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const MatrixView<const T> s =
        FrontAt<const T>(analysis, factor.block.data(), analysis.fronts() - 1).panel;
    std::vector<T> b(kN);
    const SparseView<T> view = a.view().As<T>();
    for (int64_t i = 0; i < kN; ++i) {
      view.ForRow(Op::kNone, i, [&](int32_t, T v) { b[i] += v; });  // x is all ones
    }
    for (int64_t i = 0; i < kKept; ++i) {
      for (int64_t j = 0; j < kKept; ++j) b[options.keep[i]] -= s(i, j) - (i == j ? T{1} : T{0});
    }
    EXPECT_OK(SolveWith(executor_, factor, Op::kNone, MatrixView<T>{b.data(), kN, 1, kN}));
    for (const T x : b) EXPECT_LT(std::abs(Widen(x) - 1.0), 1e4 * UnitRoundoff(GetParam()));
  });
}

TEST_P(HostMultifrontalTest, HasTheSameBitsOnAnyNumberOfCores) {
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
      // Between the factors and the interchanges may be a gap.
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

TEST_F(HostMultifrontalTest, TellsHowManyColumnsAreFinal) {
  Executor one(1);
  const PackedSparse a = OfType(GridEntries(14, 3), 2744, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(Factor factor, MakeFactor(one, a.view(), DType::kFloat64));
  DeviceReport report;
  std::vector<int64_t> told;
  const auto note = [&] {
    told.push_back(report.ColumnsDone());
    return false;
  };
  ASSERT_OK(FactorAgain(one, a.view(), factor, note, nullptr, &report));
  EXPECT_LT(told.front(), a.n);
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  const auto all = std::unique(told.begin(), told.end());
  EXPECT_GT(all - told.begin(), 3) << "after subtrees, and the fronts above them";
  EXPECT_EQ(report.ColumnsDone(), a.n);
}

TEST_F(HostMultifrontalTest, StopsInSolves) {
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
}  // namespace crout::testing
