// SPDX-License-Identifier: Apache-2.0

// Tests results that the multifrontal method derives from its pivots: the determinant, the numbers
// of negative and of perturbed pivots, and the reports of singular and non-finite matrices.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/sparse/ordering_process.h"
#include "tests/kernels/multifrontal/multifrontal_testing.h"
#include "tests/support/matrices/sparse_gallery.h"
#include "tests/support/runners/device_under_test.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::perturbed_pivots_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class PerturbedPivotsTest
    : public OnDeviceUnderTest<MultifrontalRunner, ::testing::TestWithParam<DType>> {};

TEST_P(PerturbedPivotsTest, ComputesTheDeterminant) {
  constexpr int64_t kN = 9;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const PackedSparse a = OfType(EntriesOf(RandomSparse(kN, 0.4, seed), kN), kN, GetParam());
    // The reference is elimination of the dense form in long double.
    std::vector<std::complex<long double>> dense(kN * kN);
    DispatchDType(GetParam(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0; i < kN; ++i) {
        a.view().As<T>().ForRow(Op::kNone, i, [&](int32_t j, T v) {
          dense[i + j * kN] = std::complex<double>(ToFloat64(v));
        });
      }
    });
    std::complex<long double> det = 1;
    for (int64_t k = 0; k < kN; ++k) {
      int64_t p = k;
      for (int64_t i = k; i < kN; ++i) {
        if (std::abs(dense[i + k * kN]) > std::abs(dense[p + k * kN])) p = i;
      }
      for (int64_t j = 0; j < kN; ++j) std::swap(dense[k + j * kN], dense[p + j * kN]);
      if (p != k) det = -det;
      det *= dense[k + k * kN];
      for (int64_t i = k + 1; i < kN; ++i) {
        const auto l = dense[i + k * kN] / dense[k + k * kN];
        for (int64_t j = k; j < kN; ++j) dense[i + j * kN] -= l * dense[k + j * kN];
      }
    }
    for (const MatchingMode matching : {MatchingMode::kOff, MatchingMode::kOn}) {
      AnalysisOptions options;
      options.matching = matching;
      ASSERT_OK_AND_ASSIGN(const Factor factor, runner_->Make(a.view(), GetParam(), options));
      ASSERT_OK_AND_ASSIGN(const LogDeterminant log, runner_->Determinant(factor));
      const std::complex<double> ours = log.sign * std::exp(log.log_abs);
      EXPECT_NEAR(std::abs(ours / std::complex<double>(det) - 1.0), 0,
                  1e4 * UnitRoundoff(GetParam()));
    }
  }
}

TEST_F(PerturbedPivotsTest, CountsNegativePivots) {
  // The matrix is a Laplacian minus a shift. It has as many negative pivots as the Laplacian has
  // eigenvalues below the shift.
  constexpr int64_t kM = 12;
  for (const double shift : {0.0, 1.23, 4.567}) {
    std::vector<SparseEntry> entries;
    int64_t negative = 0;
    for (int32_t v = 0; v < kM * kM; ++v) {
      entries.push_back({v, v, 4 - shift});
      for (const int32_t w : {v % kM < kM - 1 ? v + 1 : -1, v + static_cast<int32_t>(kM)}) {
        if (w < 0 || w >= kM * kM) continue;
        entries.push_back({v, w, -1.0});
        entries.push_back({w, v, -1.0});
      }
      const auto eigenvalue = [](int64_t k) {
        return 2 - 2 * std::cos(M_PI * static_cast<double>(k + 1) / (kM + 1));
      };
      if (eigenvalue(v % kM) + eigenvalue(v / kM) < shift) ++negative;
    }
    const PackedSparse a = PackEntries(entries, kM * kM, DType::kFloat64);
    AnalysisOptions options;
    options.matching = MatchingMode::kOff;
    ASSERT_OK_AND_ASSIGN(const Factor factor, runner_->Make(a.view(), DType::kFloat64, options));
    if (factor.summary.interchanges > 0) {
      EXPECT_FALSE(factor.summary.negative_pivots.has_value());
    } else {
      EXPECT_EQ(factor.summary.negative_pivots, negative);
    }
    if (shift == 0) {
      EXPECT_EQ(factor.summary.negative_pivots, 0);
    }
  }
  const PackedSparse general = OfType(GridEntries(5, 2), 25, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const Factor factor, runner_->Make(general.view(), DType::kFloat64));
  EXPECT_FALSE(factor.summary.negative_pivots.has_value());
}

TEST_F(PerturbedPivotsTest, PerturbsPivotsThatStayTooSmall) {
  // Without matching, each zero on the diagonal is in a front of one column.
  std::vector<SparseEntry> entries;
  constexpr int32_t kN = 60;
  for (int32_t i = 0; i < kN; ++i) {
    entries.push_back({i, i, i % 10 == 0 ? 0.0 : 4.0});
    if (i + 1 < kN) entries.push_back({i, i + 1, 1.0});
    if (i + 1 < kN) entries.push_back({i + 1, i, 1.0});
  }
  const PackedSparse a = PackEntries(entries, kN, DType::kFloat64);
  AnalysisOptions options;
  options.matching = MatchingMode::kOff;
  options.ordering = OrderingMode::kNatural;
  ASSERT_OK_AND_ASSIGN(const Factor perturbed, runner_->Make(a.view(), DType::kFloat64, options));
  EXPECT_EQ(perturbed.summary.info, 0);
  EXPECT_LT(runner_->ErrorOf(perturbed, a.view(), Op::kNone, 1, 3), 4e-16);
  ASSERT_OK_AND_ASSIGN(const Factor matched, runner_->Make(a.view(), DType::kFloat64));
  EXPECT_TRUE(matched.analysis.matched);
  EXPECT_EQ(matched.summary.perturbed_pivots, 0);
  EXPECT_LT(runner_->ErrorOf(matched, a.view(), Op::kNone, 1, 1), 4e-16);
}

TEST_F(PerturbedPivotsTest, PerturbsOrPostponesPivotsWithoutAcceptableRow) {
  std::vector<SparseEntry> entries = GridEntries(30, 2);
  AnalysisOptions options;
  options.matching = MatchingMode::kOff;
  const PackedSparse grid = PackEntries(entries, 900, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(Factor factor, runner_->Make(grid.view(), DType::kFloat64, options));
  EXPECT_EQ(factor.summary.perturbed_pivots, 0);
  // Sets the diagonal entries of three leaf fronts with one column to zero.
  const Analysis& analysis = factor.analysis;
  std::set<int32_t> zeros;
  for (int64_t f = 0; f < analysis.fronts() && zeros.size() < 3; ++f) {
    if (analysis.eliminated(f) != 1 || analysis.child_start[f] != analysis.child_start[f + 1])
      continue;
    zeros.insert(analysis.row_order[analysis.first_position[f]]);
  }
  ASSERT_EQ(zeros.size(), 3u);
  for (SparseEntry& entry : entries) {
    if (entry.row == entry.column && zeros.count(entry.row) > 0) entry.value = 0;
  }
  const PackedSparse a = PackEntries(entries, 900, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(factor.summary, runner_->Again(a.view(), factor));
  EXPECT_EQ(factor.summary.perturbed_pivots, 3);
  EXPECT_EQ(factor.summary.info, 0);
  EXPECT_GT(factor.summary.pivot_growth, 1e3);
  EXPECT_LT(runner_->ErrorOf(factor, a.view(), Op::kNone, 1, 4), 4e-16);

  // The parent fronts have rows with acceptable pivots, so postponing succeeds.
  std::vector<int32_t> postponable;
  ASSERT_OK(runner_->Again(a.view(), factor, kNeverStop, &postponable));
  ASSERT_EQ(postponable.size(), 3u);
  std::vector<int32_t> interchanges;
  const auto read_interchanges = [&](const Factor& from) {
    const auto* const pivots = reinterpret_cast<const int32_t*>(
        from.block.data() + MultifrontalLayout(from.analysis, DType::kFloat64).pivots);
    interchanges.assign(pivots, pivots + 900);
  };
  Factor better = factor;
  for (int round = 0; round < 4 && !postponable.empty(); ++round) {
    read_interchanges(better);
    ASSERT_OK_AND_ASSIGN(better.analysis, Postpone(better.analysis, a.view(), postponable,
                                                   interchanges, options, kNeverStop));
    ASSERT_OK_AND_ASSIGN(better.summary,
                         runner_->Again(a.view(), better, kNeverStop, &postponable));
  }
  EXPECT_LT(better.analysis.flops, 1.1 * factor.analysis.flops);
  EXPECT_EQ(better.summary.perturbed_pivots, 0);
  EXPECT_LT(better.summary.pivot_growth, 1e3);
  for (const Op op : kOps) {
    EXPECT_LT(runner_->ErrorOf(better, a.view(), op, 2, 1), 4e-16);
  }
  // Postpone refuses arguments that do not belong to the factor.
  ASSERT_OK(runner_->Again(a.view(), factor, kNeverStop, &postponable));
  read_interchanges(factor);
  EXPECT_FALSE(Postpone(factor.analysis, grid.view(), std::vector<int32_t>{900}, interchanges,
                        options, kNeverStop)
                   .ok());
  interchanges[postponable[0]] = 7;
  EXPECT_FALSE(
      Postpone(factor.analysis, a.view(), postponable, interchanges, options, kNeverStop).ok());
  EXPECT_FALSE(Postpone(factor.analysis, a.view(), postponable, {}, options, kNeverStop).ok());
}

TEST_F(PerturbedPivotsTest, PerturbsPivotsOfLargeFronts) {
  constexpr int64_t kN = 700;
  constexpr int32_t kZero = 650;
  std::vector<SparseEntry> entries = EntriesOf(RandomMatrix(kN, kN, 3), kN);
  for (SparseEntry& entry : entries) {
    if (entry.column == kZero) entry.value = 0;  // stored zeros
  }
  AnalysisOptions options;
  options.matching = MatchingMode::kOff;
  options.ordering_program = OrderingProgram();
  ASSERT_OK_AND_ASSIGN(
      const Factor factor,
      runner_->Make(PackEntries(entries, kN, DType::kFloat64).view(), DType::kFloat64, options));
  ASSERT_EQ(factor.analysis.largest_front, kN);
  EXPECT_EQ(factor.summary.perturbed_pivots, 1);
  EXPECT_GT(factor.summary.info, 0);
  EXPECT_EQ(factor.summary.singular_column, kZero);
  EXPECT_LT(factor.summary.pivot_growth, 1e3);
}

TEST_F(PerturbedPivotsTest, ReportsSingularMatrices) {
  // Rows 3 and 7 are equal, but the matrix is not structurally singular.
  constexpr int64_t kN = 12;
  HostMatrix a(kN * kN);
  for (int64_t j = 0; j < kN; ++j) {
    for (int64_t i = 0; i < kN; ++i) a[i + j * kN] = (i * 5 + j * 3) % 7 + (i == j ? 8 : 0);
  }
  for (int64_t j = 0; j < kN; ++j) a[7 + j * kN] = a[3 + j * kN];
  const PackedSparse packed = PackSparse(a, kN, DType::kFloat64);
  AnalysisOptions options;
  options.matching = MatchingMode::kOff;
  ASSERT_OK_AND_ASSIGN(const Factor factor, runner_->Make(packed.view(), DType::kFloat64, options));
  EXPECT_EQ(factor.summary.perturbed_pivots, 1);
  // An empty row and column.
  const PackedSparse holes =
      PackEntries({{0, 0, 1.0}, {2, 2, 1.0}, {0, 2, 0.5}}, 3, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const Factor empty, runner_->Make(holes.view(), DType::kFloat64, options));
  EXPECT_GT(empty.summary.info, 0);
  EXPECT_EQ(empty.summary.singular_column, 1);
  ASSERT_OK_AND_ASSIGN(const LogDeterminant determinant, runner_->Determinant(empty));
  EXPECT_EQ(determinant.sign, 0.0);
  const PackedSparse zero = PackSparse(HostMatrix(9), 3, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const Factor none, runner_->Make(zero.view(), DType::kFloat64, options));
  EXPECT_EQ(none.summary.info, 1);
}

TEST_F(PerturbedPivotsTest, ReportsNonFiniteFactors) {
  PackedSparse a = OfType(GridEntries(12, 2), 144, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(Factor factor, runner_->Make(a.view(), DType::kFloat64));
  EXPECT_LT(factor.summary.pivot_growth, 2);
  for (const double bad : {std::nan(""), kInfinity}) {
    const SparseLayout at(a.n, a.nonzeros, a.dtype);
    std::memcpy(a.bytes.data() + at.value + 100 * sizeof(double), &bad, sizeof(double));
    ASSERT_OK_AND_ASSIGN(const NumericSummary summary, runner_->Again(a.view(), factor));
    EXPECT_EQ(summary.pivot_growth, kInfinity);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, PerturbedPivotsTest, ::testing::ValuesIn(kDTypes),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

}  // namespace
}  // namespace crout::testing::perturbed_pivots_test
