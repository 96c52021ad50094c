// SPDX-License-Identifier: Apache-2.0

// Tests which results cause warnings: the rules themselves, and the warnings for dense factors and
// solves.
#include "kernels/numerics/accuracy_warnings.h"

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/jobs/assess_solution.h"
#include "tests/support/fakes/fake_device.h"
#include "tests/support/matrices/gallery.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::accuracy_warnings_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(JudgmentTest, ComparesGrowthWithTheRoundoffOfTheType) {
  EXPECT_FALSE(IsGrowthHarmful(1e11, DType::kFloat64));
  EXPECT_TRUE(IsGrowthHarmful(1e12, DType::kFloat64));
  EXPECT_FALSE(IsGrowthHarmful(1e3, DType::kComplex64));
  EXPECT_TRUE(IsGrowthHarmful(1e4, DType::kComplex64));
  EXPECT_TRUE(IsGrowthHarmful(kInfinity, DType::kFloat64));
  EXPECT_TRUE(IsGrowthHarmful(NAN, DType::kFloat64));
}

TEST(JudgmentTest, LowersTheConditionLimitWithTheOrder) {
  EXPECT_FALSE(IsNearlySingular(1e15, DType::kFloat64, 4));
  EXPECT_TRUE(IsNearlySingular(3e15, DType::kFloat64, 4));
  EXPECT_TRUE(IsNearlySingular(1e14, DType::kFloat64, 100));
  // Random matrices of order 10,000 have condition numbers near 1e8 and accurate solutions.
  EXPECT_FALSE(IsNearlySingular(1e13, DType::kFloat64, 10000));
  EXPECT_FALSE(IsNearlySingular(1e5, DType::kFloat32, 10000));
  EXPECT_TRUE(IsNearlySingular(NAN, DType::kFloat64, 1));
  EXPECT_TRUE(IsNearlySingular(kInfinity, DType::kFloat64, 1));
}

TEST(JudgmentTest, UsesGrowthOnlyWithoutAMeasuredError) {
  FactorSummary factor;
  factor.n = 2;
  factor.pivot_growth = 1e13;
  factor.quality = 0;
  const std::vector<double> x = {1, 1};
  PackedMatrix delivered{reinterpret_cast<const std::byte*>(x.data()), DType::kFloat64,
                         Layout::kColumnMajor, 2, 1};
  SolveFigures figures;
  figures.accepted = 1e-15;
  EXPECT_TRUE(AssessSolution(&factor, figures, delivered).growth);
  figures.backward_error = 1e-16;
  AccuracyWarnings accuracy_warnings = AssessSolution(&factor, figures, delivered);
  EXPECT_FALSE(accuracy_warnings.growth || accuracy_warnings.inaccurate ||
               accuracy_warnings.nearly_singular);
  for (const double error : {1e-14, static_cast<double>(NAN)}) {
    figures.backward_error = error;
    EXPECT_TRUE(AssessSolution(&factor, figures, delivered).inaccurate);
  }
  figures.backward_error = 1e-16;
  figures.finite = false;
  EXPECT_TRUE(AssessSolution(&factor, figures, delivered).inaccurate);
  // Without a factor and a backward error, only the elements of X are checked.
  const std::vector<double> lost = {1, kInfinity};
  delivered.data = reinterpret_cast<const std::byte*>(lost.data());
  EXPECT_TRUE(AssessSolution(nullptr, {}, delivered).inaccurate);
}

TEST(JudgmentTest, WarnsOfLargeSolutions) {
  FactorSummary factor;
  factor.n = 2;
  factor.quality = 0;
  factor.pivot_growth = 1;
  const std::vector<double> x = {1e17, 1};
  const PackedMatrix delivered{reinterpret_cast<const std::byte*>(x.data()), DType::kFloat64,
                               Layout::kColumnMajor, 2, 1};
  SolveFigures figures;
  figures.backward_error = 0;
  figures.rhs_max_abs = 1;
  figures.matrix_norm = 1;
  EXPECT_TRUE(AssessSolution(&factor, figures, delivered).nearly_singular);
  figures.matrix_norm = 1e-4;
  EXPECT_FALSE(AssessSolution(&factor, figures, delivered).nearly_singular);
}

class AssessedSolvesTest : public ::testing::Test {
 protected:
  // Factors A and solves for the right-hand side A e, where e is all ones. This right-hand side has
  // no component that would reveal the null space of A.
  std::pair<FactorSummary, AccuracyWarnings> Assess(const HostMatrix& a, int64_t n, DType dtype,
                                                    EquilibrateMode mode = EquilibrateMode::kAuto) {
    FactorRequest request;
    request.matrix_dtype = dtype;
    request.factor_dtype = dtype;
    request.equilibrate = mode;
    auto factor = runner_.Factor(a, n, request);
    EXPECT_OK(factor.status());
    if (!factor.ok() || factor->summary.info > 0) return {};
    HostMatrix b(n);
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < n; ++i) b[i] += a[i + j * n];
    }
    SolveRequest solve;
    solve.dtype = dtype;
    const auto solved = runner_.Solve(*factor, b, 1, solve);
    EXPECT_OK(solved.status());
    if (!solved.ok()) return {};
    return {factor->summary, solved->summary.accuracy_warnings};
  }

  FakeDevice device_;
  JobRunner runner_{device_};
};

HostMatrix Magic4() { return {16, 5, 9, 4, 2, 11, 7, 14, 3, 10, 6, 15, 13, 8, 12, 1}; }

HostMatrix Counting(int64_t n) {
  HostMatrix a(n * n);
  for (int64_t k = 0; k < n * n; ++k) a[(k % n) * n + k / n] = static_cast<double>(k + 1);
  return a;
}

// The Laplacian of a path whose edges have seven different weights. Every row sum is zero.
HostMatrix PathLaplacian(int64_t n) {
  HostMatrix a(n * n);
  for (int64_t i = 0; i + 1 < n; ++i) {
    const double w = 0.1 * static_cast<double>(1 + i % 7);
    a[i + i * n] += w;
    a[i + 1 + (i + 1) * n] += w;
    a[i + (i + 1) * n] = a[i + 1 + i * n] = -w;
  }
  return a;
}

TEST_F(AssessedSolvesTest, DetectsMatricesThatAreSingularUpToRounding) {
  const std::vector<std::pair<HostMatrix, int64_t>> matrices = {
      {Magic4(), 4},
      {Counting(3), 3},
      {GalleryNamed("hilbert").make(14), 14},
      {PathLaplacian(30), 30}};
  for (size_t k = 0; k < matrices.size(); ++k) {
    SCOPED_TRACE(k);
    const auto& [a, n] = matrices[k];
    const auto [factor, accuracy_warnings] = Assess(a, n, DType::kFloat64);
    if (factor.n == 0) continue;  // an exactly zero pivot, so there was no solve
    EXPECT_TRUE(factor.is_nearly_singular()) << factor.condition_signal;
    EXPECT_TRUE(accuracy_warnings.nearly_singular);
    EXPECT_FALSE(accuracy_warnings.inaccurate);
  }
}

TEST_F(AssessedSolvesTest, DoesNotWarnOfWellConditionedMatrices) {
  constexpr int64_t kN = 40;
  for (uint64_t seed = 0; seed < 250; ++seed) {
    HostMatrix a = RandomMatrix(kN, kN, seed);
    for (int64_t i = 0; i < kN; ++i) a[i + i * kN] += 1;
    HostMatrix rows = a;
    for (int64_t k = 0; k < kN * kN; ++k) rows[k] = std::ldexp(a[k], static_cast<int>(k % kN) - 20);
    for (const auto& [matrix, dtype] :
         {std::pair(a, DType::kFloat64), std::pair(a, DType::kFloat32),
          std::pair(rows, DType::kFloat64), std::pair(rows, DType::kFloat32)}) {
      const auto [factor, accuracy_warnings] = Assess(matrix, kN, dtype);
      ASSERT_FALSE(factor.is_nearly_singular()) << seed << " " << factor.condition_signal;
      ASSERT_FALSE(factor.is_poor());
      ASSERT_FALSE(accuracy_warnings.nearly_singular || accuracy_warnings.inaccurate ||
                   accuracy_warnings.growth)
          << seed;
    }
  }
}

TEST_F(AssessedSolvesTest, DoesNotWarnOfBadScalesAlone) {
  const HostMatrix diagonal = {1, 0, 0, 1e-20};
  EXPECT_FALSE(Assess(diagonal, 2, DType::kFloat64).first.is_nearly_singular());
  EXPECT_TRUE(
      Assess(diagonal, 2, DType::kFloat64, EquilibrateMode::kOff).first.is_nearly_singular());
}

TEST_F(AssessedSolvesTest, DoesNotMistakeGrowthForSingularity) {
  constexpr int64_t kN = 60;
  HostMatrix a(kN * kN);
  for (int64_t j = 0; j < kN; ++j) {
    a[j + j * kN] = 1;
    for (int64_t i = j + 1; i < kN; ++i) a[i + j * kN] = -1;
    a[j + (kN - 1) * kN] = 1;
  }
  const auto [factor, accuracy_warnings] = Assess(a, kN, DType::kFloat64);
  EXPECT_TRUE(factor.is_poor());
  EXPECT_FALSE(factor.is_nearly_singular());
  EXPECT_FALSE(accuracy_warnings.growth);  // the measured error makes this warning unnecessary
}

}  // namespace
}  // namespace crout::testing::accuracy_warnings_test
