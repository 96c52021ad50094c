// SPDX-License-Identifier: Apache-2.0

// Tests matrices with fronts that have no acceptable pivot because of zero or small diagonal
// entries, or because entries differ much in size.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernels/sparse/delayed_pivots.h"
#include "tests/kernels/multifrontal/multifrontal_testing.h"
#include "tests/support/matrices/sparse_classes.h"
#include "tests/support/matrices/sparse_gallery.h"
#include "tests/support/runners/device_under_test.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::multifrontal_pivots_test {
namespace {

using Entries = std::vector<SparseEntry>;

// The matrix of a grid of m x m points with this diagonal. It couples right and lower neighbours by
// -1, and left and upper neighbours by -`sign`.
Entries GridOf(int32_t m, std::complex<double> diagonal, double sign) {
  Entries entries;
  for (int32_t v = 0; v < m * m; ++v) {
    entries.push_back({v, v, diagonal});
    for (const int32_t w : {v % m < m - 1 ? v + 1 : m * m, v + m}) {
      if (w >= m * m) continue;
      entries.push_back({v, w, -1.0});
      entries.push_back({w, v, -sign});
    }
  }
  return entries;
}

// Modified nodal analysis of a connected network with conductances from 10^least to 100. It has
// controlled sources, a few resistors to ground, and voltage sources, whose diagonal entry is zero.
Entries Network(int32_t nodes, int32_t sources, double least, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
  };
  const auto below = [&](int32_t n) { return static_cast<int32_t>(random() % n); };
  Entries entries = {{0, 0, 1.0}};
  const auto connect = [&](int32_t i, int32_t j) {
    if (i == j) return;
    const double g = std::pow(10.0, uniform(least, 2));
    entries.insert(entries.end(), {{i, i, g}, {j, j, g}, {i, j, -g}, {j, i, -g}});
  };
  for (int32_t i = 1; i < nodes; ++i) {
    connect(i, std::max(0, i - 1 - below(40)));
    connect(i, below(nodes));
    if (i % 3 == 0) entries.push_back({i, i, 1e-12});
    if (i % 4 == 0) entries.push_back({below(nodes), below(nodes), uniform(1e-6, 1)});
  }
  for (int32_t s = 0; s < sources; ++s) {
    const int32_t plus = 1 + s * ((nodes - 1) / sources);  // > minus: no loops
    const int32_t minus = below(plus);
    const int32_t k = nodes + s;
    entries.insert(entries.end(),
                   {{plus, k, 1.0}, {minus, k, -1.0}, {k, plus, 1.0}, {k, minus, -1.0}});
  }
  return entries;
}

// A random upper triangular matrix with randomly permuted rows and columns.
Entries PermutedTriangle(int32_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int32_t> rows(n), columns(n);
  for (int32_t i = 0; i < n; ++i) rows[i] = columns[i] = i;
  std::shuffle(rows.begin(), rows.end(), random);
  std::shuffle(columns.begin(), columns.end(), random);
  Entries entries;
  for (int32_t i = 0; i < n; ++i) {
    entries.push_back({rows[i], columns[i], 1.0 + static_cast<double>(i % 7)});
    for (int k = 0; k < 4; ++k) {
      const auto j = static_cast<int32_t>(i + random() % (n - i));
      if (j > i) entries.push_back({rows[i], columns[j], std::sin(1.0 + i + j)});
    }
  }
  return entries;
}

Entries BandedWithoutDiagonal(int32_t n, int32_t width) {
  Entries entries;
  for (int32_t i = 0; i < n; ++i) {
    for (int32_t j = std::max(0, i - width); j < std::min(n, i + width + 1); ++j) {
      entries.push_back({i, j, i == j ? 1e-9 : std::sin(1.0 + 3.0 * i + 5.0 * j)});
    }
  }
  return entries;
}

// Kkt() with the block of the variables multiplied by 1e-8.
Entries SaddlePoint(int32_t variables) {
  Entries entries = Kkt(variables).entries;
  for (SparseEntry& entry : entries) {
    if (std::max(entry.row, entry.column) < variables) entry.value *= 1e-8;
  }
  return entries;
}

// Multiplies entries by powers of i, which preserves the moduli.
Entries Turned(Entries entries) {
  constexpr std::complex<double> kPowers[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
  for (SparseEntry& entry : entries) {
    entry.value *= kPowers[(entry.row + 3 * entry.column + entry.row / 5) % 4];
  }
  return entries;
}

Entries ArrowWithZeroTip(int32_t n) {
  Entries entries;
  for (int32_t i = 1; i < n; ++i) {
    entries.insert(entries.end(), {{i, i, i % 2 == 0 ? 1.0 : 1e-4}, {0, i, 1.0}, {i, 0, 1.0}});
  }
  return entries;
}

std::vector<SparseCase> UnstableCases() {
  constexpr int32_t kM = 30;
  std::vector<SparseCase> cases;
  for (const double k2 : {4.0001, 4.001, 4.01, 4.1}) {
    cases.push_back({"Helmholtz " + std::to_string(k2), kM * kM, GridOf(kM, 4 - k2, 1)});
  }
  for (const double shift : {1e-6, 1e-4, 1e-2}) {
    cases.push_back({"skew " + std::to_string(shift), kM * kM, GridOf(kM, shift, -1)});
  }
  cases.push_back({"damped Helmholtz", kM * kM, GridOf(kM, {0, 1e-6}, 1)});
  const SparseProblem stokes = Stokes(12);
  cases.push_back({"Stokes", stokes.n, stokes.entries});
  cases.push_back({"KKT", 500, Kkt(400).entries});
  cases.push_back({"saddle point", 500, SaddlePoint(400)});
  for (uint64_t seed = 0; seed < 2; ++seed) {
    cases.push_back({"network " + std::to_string(seed), 430, Network(400, 30, -4, seed)});
    cases.push_back({"wide network " + std::to_string(seed), 430, Network(400, 30, -12, seed)});
  }
  cases.push_back({"permuted triangle", 500, PermutedTriangle(500, 3)});
  cases.push_back({"banded", 1000, BandedWithoutDiagonal(1000, 5)});
  cases.push_back({"arrow", 300, ArrowWithZeroTip(300)});
  cases.push_back({"Neumann", kM * kM, GridOf(kM, 4 + 1e-6, 1)});
  return cases;
}

class MultifrontalPivotsTest
    : public OnDeviceUnderTest<MultifrontalRunner, ::testing::TestWithParam<DType>> {
 protected:
  // Factors. Delays pivots, in up to two rounds, if those of the first analysis are not acceptable.
  absl::StatusOr<Factor> MakeStable(const AnySparse& a, const AnalysisOptions& options) {
    Factor factor;
    factor.dtype = a.dtype;
    CROUT_ASSIGN_OR_RETURN(factor.analysis, Analyze(a, options, kNeverStop));
    CROUT_ASSIGN_OR_RETURN(factor.summary, runner_->Again(a, factor, kNeverStop, &postponable_));
    delayed_ = false;
    for (int round = 0; round < 2 && NeedsDelays(factor); ++round) {  // same limit as in a job
      delayed_ = true;
      CROUT_ASSIGN_OR_RETURN(factor.analysis,
                             DelayPivots(factor.analysis, a, a.dtype, options, kNeverStop));
      CROUT_ASSIGN_OR_RETURN(factor.summary, runner_->Again(a, factor, kNeverStop, &postponable_));
    }
    return factor;
  }

  // Returns the largest modulus in L21 of any front.
  static double LargestBelow(const Factor& factor) {
    double largest = 0;
    DispatchDType(factor.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t f = 0; f < factor.analysis.fronts(); ++f) {
        const auto front = FrontAt<const T>(factor.analysis, factor.block.data(), f);
        for (int64_t j = 0; j < front.panel.cols; ++j) {
          for (int64_t i = front.panel.cols; i < front.panel.rows; ++i) {
            largest = std::max<double>(largest, std::abs(front.panel(i, j)));
          }
        }
      }
    });
    return largest;
  }

  bool NeedsDelays(const Factor& factor) const {
    return !postponable_.empty() && IsUnstable(factor.summary);
  }

  std::vector<int32_t> postponable_;  // found by the last factorization
  bool delayed_ = false;
};

TEST_P(MultifrontalPivotsTest, LeavesNoUnacceptablePivot) {
  const double roundoff = UnitRoundoff(GetParam());
  int delayed = 0;
  for (const SparseCase& one : UnstableCases()) {
    const PackedSparse a =
        PackEntries(IsComplex(GetParam()) ? Turned(one.entries) : one.entries, one.n, GetParam());
    for (const MatchingMode matching : {MatchingMode::kAuto, MatchingMode::kOff}) {
      SCOPED_TRACE(::testing::Message() << one.name << " matching " << static_cast<int>(matching));
      // These matrices are singular in float32. The damped one is also singular in real types,
      // which have no damping.
      const bool is_wide = one.name.starts_with("wide") || one.name.starts_with("saddle");
      if (is_wide && roundoff > 1e-10) continue;
      if (one.name.starts_with("damped") && (roundoff > 1e-10 || !IsComplex(GetParam()))) continue;
      AnalysisOptions options;
      options.matching = matching;
      ASSERT_OK_AND_ASSIGN(const Factor factor, MakeStable(a.view(), options));
      delayed += delayed_;
      EXPECT_EQ(factor.summary.info, 0);
      EXPECT_EQ(factor.summary.perturbed_pivots, 0);
      EXPECT_FALSE(NeedsDelays(factor)) << postponable_.size();
      EXPECT_LT(factor.summary.pivot_growth, 1e5);
      EXPECT_LT(runner_->ErrorOf(factor, a.view(), Op::kNone, 2, 2), 10 * roundoff);
      EXPECT_LT(runner_->ErrorOf(factor, a.view(), Op::kTranspose, 2, 2), 10 * roundoff);
    }
  }
  EXPECT_GT(delayed, 10);
}

// The eigenvalues of the matrix are diagonal - 2 cos(pi i / (m + 1)) - 2 cos(pi j / (m + 1)).
TEST_P(MultifrontalPivotsTest, ComputesDeterminantOfHelmholtzMatrix) {
  constexpr int32_t kM = 40;
  const double diagonal = -1e-3;
  double log_abs = 0;
  double sign = 1;
  for (int i = 1; i <= kM; ++i) {
    for (int j = 1; j <= kM; ++j) {
      const double value =
          diagonal - 2 * std::cos(M_PI * i / (kM + 1)) - 2 * std::cos(M_PI * j / (kM + 1));
      log_abs += std::log(std::abs(value));
      if (value < 0) sign = -sign;
    }
  }
  const PackedSparse a = PackEntries(GridOf(kM, diagonal, 1), kM * kM, GetParam());
  for (const MatchingMode matching : {MatchingMode::kAuto, MatchingMode::kOff}) {
    AnalysisOptions options;
    options.matching = matching;
    ASSERT_OK_AND_ASSIGN(const Factor factor, MakeStable(a.view(), options));
    ASSERT_OK_AND_ASSIGN(const LogDeterminant determinant, runner_->Determinant(factor));
    EXPECT_NEAR(determinant.log_abs, log_abs, 1e7 * UnitRoundoff(GetParam()));
    EXPECT_LT(std::abs(determinant.sign - sign), 1e7 * UnitRoundoff(GetParam()));
  }
}

// Kept unknowns never become pivots, and no column is delayed into their front.
TEST_P(MultifrontalPivotsTest, DelaysPivotsOnlyAmongEliminatedUnknowns) {
  constexpr int32_t kM = 20;
  const PackedSparse a = PackEntries(GridOf(kM, 1e-5, -1), kM * kM, GetParam());
  AnalysisOptions options;
  options.keep = {3, 50, 399, 200};
  ASSERT_OK_AND_ASSIGN(const Factor factor, MakeStable(a.view(), options));
  EXPECT_TRUE(delayed_);
  const Analysis& analysis = factor.analysis;
  EXPECT_EQ(analysis.kept, 4);
  const int64_t first = analysis.n - analysis.kept;
  EXPECT_TRUE(
      std::equal(options.keep.begin(), options.keep.end(), analysis.row_order.begin() + first));
  EXPECT_TRUE(
      std::equal(options.keep.begin(), options.keep.end(), analysis.column_order.begin() + first));
  EXPECT_EQ(factor.summary.perturbed_pivots, 0);
  EXPECT_LT(factor.summary.pivot_growth, 1e5);
}

TEST_P(MultifrontalPivotsTest, BoundsMultipliersByTheThreshold) {
  const PackedSparse a = PackEntries(GridOf(20, 1e-5, -1), 400, GetParam());
  int64_t entries = 0;
  for (const double threshold : {0.001, 0.01, 0.1, 0.5, 1.0}) {
    SCOPED_TRACE(threshold);
    AnalysisOptions options;
    options.matching = MatchingMode::kOff;
    options.pivot_threshold = threshold;
    ASSERT_OK_AND_ASSIGN(const Factor factor, MakeStable(a.view(), options));
    EXPECT_TRUE(delayed_);
    EXPECT_EQ(factor.analysis.pivot_threshold, threshold);
    EXPECT_EQ(factor.summary.perturbed_pivots, 0);
    EXPECT_LT(LargestBelow(factor), (1 + 1e-3) * std::sqrt(2.0) / threshold);
    EXPECT_GE(factor.analysis.factor_entries(), entries);
    entries = factor.analysis.factor_entries();
  }
}

TEST_F(MultifrontalPivotsTest, ReportsErrorsOfDelays) {
  const PackedSparse a = PackEntries(GridOf(20, 1e-5, -1), 400, DType::kFloat64);
  const PackedSparse other = PackEntries(GridOf(20, 1e-5, -1), 401, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const Analysis analysis, Analyze(a.view(), {}, kNeverStop));
  EXPECT_THAT(DelayPivots(analysis, other.view(), DType::kFloat64, {}, kNeverStop),
              FailsWith(absl::StatusCode::kInvalidArgument, "analyzed"));
  EXPECT_THAT(DelayPivots(analysis, a.view(), DType::kFloat64, {}, [] { return true; }),
              FailsWith(absl::StatusCode::kCancelled, ""));
  AnalysisOptions options;
  options.claim = [](size_t) { return absl::ResourceExhaustedError("no memory"); };
  EXPECT_THAT(DelayPivots(analysis, a.view(), DType::kFloat64, options, kNeverStop),
              FailsWith(absl::StatusCode::kResourceExhausted, "no memory"));
}

INSTANTIATE_TEST_SUITE_P(Types, MultifrontalPivotsTest, ::testing::ValuesIn(kDTypes),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

}  // namespace
}  // namespace crout::testing::multifrontal_pivots_test
