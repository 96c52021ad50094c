// SPDX-License-Identifier: Apache-2.0

// Tests series steps: they use the old factor while it is useful, and a new one otherwise.
#include "kernels/jobs/series/series_step.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "kernels/costs/series_model.h"
#include "tests/kernels/jobs/series_step_testing.h"
#include "tests/support/ratios.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::series_steps::series_step_test {
namespace {

TYPED_TEST_SUITE(SeriesStepTest, Types);

TYPED_TEST(SeriesStepTest, ReusesFactorForSmallChanges) {
  for (const Op op : {Op::kNone, Op::kTranspose, Op::kConjugateTranspose}) {
    for (const Layout layout : {Layout::kColumnMajor, Layout::kRowMajor}) {
      Series<TypeParam> series(*DeviceUnderTest());
      StepRequest request = this->Request();
      request.op = op;
      request.layout = layout;
      auto a = Random<TypeParam>(kN, kN, 3);
      auto b = Random<TypeParam>(kN, kNrhs, 5);
      for (int step = 0; step < 5; ++step) {
        ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary, series.Step(a, b, request));
        EXPECT_TRUE(summary.solved && summary.accurate);
        EXPECT_LE(summary.backward_error, kDefaultAccuracy);
        EXPECT_GT(summary.amplification, 1);
        EXPECT_LT(summary.amplification, 1e6);
        EXPECT_LE(BackwardError(a, kN, op, series.x(), b, kNrhs), 1.1 * kDefaultAccuracy);
        if (step == 0) {
          EXPECT_EQ(summary.old_iterations, 0);
          EXPECT_GE(summary.new_iterations, 1);
        } else {
          EXPECT_EQ(summary.new_iterations, 0);
          EXPECT_GE(summary.old_iterations, 1);
          EXPECT_LE(summary.old_iterations, 6);
        }
        a = Changed(a, 1e-6, 100 + step);
        b[step] += 0.01;
      }
    }
  }
}

TYPED_TEST(SeriesStepTest, StartsFromPreviousSolution) {
  const auto a = Random<TypeParam>(kN, kN, 3);
  const auto b = Random<TypeParam>(kN, kNrhs, 5);
  ASSERT_OK(this->series_->Step(a, b, this->Request()));
  const auto x = this->series_->x();
  // The same system needs no iteration.
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary same, this->series_->Step(a, b, this->Request()));
  EXPECT_EQ(same.old_iterations, 0);
  EXPECT_EQ(same.new_iterations, 0);
  EXPECT_TRUE(same.accurate);
  EXPECT_EQ(this->series_->x(), x);
  // With an additional column, the previous X is not used.
  const auto wide = Random<TypeParam>(kN, kNrhs + 1, 6);
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary more, this->series_->Step(a, wide, this->Request()));
  EXPECT_EQ(more.old_iterations, 1);
  EXPECT_LE(BackwardError(a, kN, Op::kNone, this->series_->x(), wide, kNrhs + 1),
            1.1 * kDefaultAccuracy);
}

TYPED_TEST(SeriesStepTest, ReusesFactorIfRightHandSideBecomesZero) {
  const auto a = Random<TypeParam>(kN, kN, 3);
  auto b = Random<TypeParam>(kN, kNrhs, 5);
  ASSERT_OK(this->series_->Step(a, b, this->Request()));
  std::fill(b.begin(), b.begin() + kN, TypeParam{});
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary,
                       this->series_->Step(Changed(a, 1e-6, 4), b, this->Request()));
  EXPECT_EQ(summary.new_iterations, 0);
  EXPECT_LE(summary.old_iterations, 6);
  EXPECT_TRUE(summary.accurate);
  EXPECT_FALSE(summary.nearly_singular);
  const auto& x = this->series_->x();
  EXPECT_TRUE(std::all_of(x.begin(), x.begin() + kN, [](TypeParam v) { return v == TypeParam{}; }));
}

TYPED_TEST(SeriesStepTest, AbandonsOldFactorBeforeItCostsMoreThanANewOne) {
  const auto a = Random<TypeParam>(kN, kN, 3);
  const auto b = Random<TypeParam>(kN, kNrhs, 5);
  StepRequest request = this->Request();
  const auto step = [&](double change, double max_remaining) {
    request.max_remaining = std::numeric_limits<double>::infinity();
    EXPECT_OK(this->series_->Step(a, b, request));
    request.max_remaining = max_remaining;
    return this->series_->Step(Changed(a, change, 4), b, request);
  };
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary near, step(1e-6, 5));
  EXPECT_EQ(near.new_iterations, 0);
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary far, step(0.02, 100));
  EXPECT_EQ(far.new_iterations, 0);
  EXPECT_GE(far.old_iterations, 8);
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary given_up, step(0.02, 2));
  EXPECT_GE(given_up.new_iterations, 1);
  EXPECT_LE(given_up.old_iterations, 3);
  EXPECT_TRUE(given_up.accurate);
  // The estimate uses the gain of the old factor on one column even if the previous X is not the
  // initial guess.
  const auto other = Random<TypeParam>(kN, 1, 6);
  EXPECT_OK(this->series_->Step(a, b, request));
  request.max_remaining = 1.4;
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary begun,
                       this->series_->Step(Changed(a, 0.02, 4), other, request));
  EXPECT_GE(begun.new_iterations, 1);
  EXPECT_EQ(begun.old_iterations, 1);
  request.min_iterations = 6;
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary later, step(-0.02, 0.5));
  EXPECT_GE(later.new_iterations, 1);
  EXPECT_EQ(later.old_iterations, 6);
}

// A refinement step that is undone still counts as an iteration. Otherwise the model of the series
// would treat the factor as untried.
TYPED_TEST(SeriesStepTest, CountsUndoneRefinementSteps) {
  StepRequest request = this->Request();
  std::vector<TypeParam> a = Changed(std::vector<TypeParam>(kN * kN), 1e-3, 3);
  for (int64_t i = 0; i < kN; ++i) a[i + i * kN] += 4.0;
  std::vector<TypeParam> b(kN, 1.0);
  b[0] = 0.3;
  ASSERT_OK(this->series_->Step(a, b, request));
  // The initial guess is the previous X. A correction increases the residual of the first equation.
  a[0] = -1;
  request.max_remaining = 1.4;
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary, this->series_->Step(a, b, request));
  EXPECT_EQ(summary.old_iterations, 1);
  EXPECT_EQ(summary.old_cost, 1);
  EXPECT_GE(summary.new_iterations, 1);
}

// The sign of a part of the diagonal alternates from step to step, so that no factor is useful for
// the next step. The model of the series must detect this. A cost of 1 takes a second here.
TYPED_TEST(SeriesStepTest, TriesUselessFactorsLessAndLessOften) {
  constexpr double kFactorSeconds = 1.3;
  constexpr int kSteps = 100;
  constexpr int kAlternating = 24;
  StepRequest request = this->Request();
  std::vector<TypeParam> b(kN, 1.0);
  std::fill(b.begin(), b.begin() + kAlternating, 0.05);
  SeriesModel model(kFactorSeconds, 1);
  int tries = 0;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<TypeParam> a = Changed(std::vector<TypeParam>(kN * kN), 1e-3, 3 + step);
    for (int64_t i = 0; i < kN; ++i) {
      const bool other = i < kAlternating && step % 2 == 1;
      a[i + i * kN] += other ? -4 - static_cast<double>(i) / 2 : 4;
    }
    const SeriesBudget budget = model.Budget();
    request.max_iterations = budget.iterations;
    request.max_remaining = budget.max_remaining;
    request.max_cost = budget.max_cost;
    request.min_iterations = budget.least;
    ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary, this->series_->Step(a, b, request));
    if (step > 0 && budget.iterations > 0) ++tries;
    const SeriesAttempt tried{summary.old_iterations, summary.old_cost, summary.old_cost};
    if (summary.new_iterations > 0) {
      model.RecordRefactorization(kFactorSeconds, tried);
    } else {
      model.RecordReuse(tried);
    }
  }
  EXPECT_GE(tries, 2);
  EXPECT_LE(tries, 10);
}

TYPED_TEST(SeriesStepTest, LimitsCostOfOldFactor) {
  const auto b = Random<TypeParam>(kN, kNrhs, 5);
  StepRequest request = this->Request();
  ASSERT_OK(this->series_->Step(Random<TypeParam>(kN, kN, 3), b, request));
  request.max_cost = 12;
  const auto other = Random<TypeParam>(kN, kN, 4);
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary, this->series_->Step(other, b, request));
  EXPECT_LE(summary.old_cost, 12);
  EXPECT_GT(summary.old_cost, 9);
  EXPECT_GE(summary.old_iterations, 4);
  EXPECT_GE(summary.new_iterations, 1);
}

// One of two columns is already accurate, although the old factor has gained little on it because
// its X is large. The other column needs only one more step.
TYPED_TEST(SeriesStepTest, DoesNotPredictOneColumnFromAnother) {
  StepRequest request = this->Request();
  request.accuracy = 1e-8;
  std::vector<TypeParam> a(kN * kN);
  for (int64_t i = 0; i < kN; ++i) a[i + i * kN] = 4;
  a[kN * kN - 1] = 4e-6;
  std::vector<TypeParam> b(kN);
  b[0] = 1;
  ASSERT_OK(this->series_->Step(a, b, request));
  a[0] *= 1 + 1e-5;
  a[kN * kN - 1] *= 1 + 1.0 / 200;
  b.resize(2 * kN);  // another number of columns, so that the previous X is not used
  b[2 * kN - 1] = 1;
  request.max_remaining = 1.1;
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary, this->series_->Step(a, b, request));
  EXPECT_EQ(summary.new_iterations, 0);
  EXPECT_EQ(summary.old_iterations, 2);
  EXPECT_TRUE(summary.accurate);
}

TYPED_TEST(SeriesStepTest, RefactorsIfMatrixChangedTooMuch) {
  const auto b = Random<TypeParam>(kN, kNrhs, 5);
  StepRequest request = this->Request();
  ASSERT_OK(this->series_->Step(Random<TypeParam>(kN, kN, 3), b, request));
  request.max_iterations = 10;
  const auto other = Random<TypeParam>(kN, kN, 4);
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary, this->series_->Step(other, b, request));
  EXPECT_EQ(summary.old_iterations, 10);
  EXPECT_GE(summary.new_iterations, 1);
  EXPECT_LE(summary.new_iterations, 3);
  EXPECT_TRUE(summary.accurate);
  EXPECT_LE(BackwardError(other, kN, Op::kNone, this->series_->x(), b, kNrhs),
            1.1 * kDefaultAccuracy);
  // The new factor belongs to the new matrix.
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary next, this->series_->Step(other, b, request));
  EXPECT_EQ(next.new_iterations, 0);
}

TYPED_TEST(SeriesStepTest, SolvesNewRightHandSidesWithPreviousMatrix) {
  const StepRequest request = this->Request();
  auto a = Random<TypeParam>(kN, kN, 3);
  for (int matrix = 0; matrix < 2; ++matrix) {
    // The matrix of the factor first, then the matrix stored by the series.
    ASSERT_OK(this->series_->Step(a, Random<TypeParam>(kN, 1, 5), request));
    for (int step = 0; step < 2; ++step) {
      const auto b = Random<TypeParam>(kN, 1, 20 + step);
      ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary,
                           this->series_->Step(std::nullopt, b, request));
      EXPECT_TRUE(summary.accurate);
      EXPECT_EQ(summary.new_iterations, 0);
      EXPECT_LE(BackwardError(a, kN, Op::kNone, this->series_->x(), b, 1), 1.1 * kDefaultAccuracy);
    }
    a = Changed(a, 1e-5, 9);
  }
}

TYPED_TEST(SeriesStepTest, ReportsSingularMatrixAndSolvesNextStep) {
  const StepRequest request = this->Request();
  const auto a = Random<TypeParam>(kN, kN, 3);
  const auto b = Random<TypeParam>(kN, kNrhs, 5);
  ASSERT_OK(this->series_->Step(a, b, request));
  auto zero = a;
  for (int64_t i = 0; i < kN; ++i) zero[i] = 0;
  // The old factor gives a huge X with a small backward error, but the matrix is singular.
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary, this->series_->Step(zero, b, request));
  EXPECT_TRUE(this->series_->made_singular());
  EXPECT_FALSE(summary.solved);
  EXPECT_FALSE(summary.accurate);
  // The matrix is stored for the next step, which also finds it singular.
  ASSERT_TRUE(this->series_->matrix());
  EXPECT_TRUE(this->series_->matrix()->parts[kMatrixPart]);
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary again,
                       this->series_->Step(std::nullopt, b, request));
  EXPECT_FALSE(again.solved);
  EXPECT_TRUE(this->series_->matrix());
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary next,
                       this->series_->Step(Changed(a, 1e-8, 4), b, request));
  EXPECT_TRUE(next.accurate);
  EXPECT_FALSE(next.nearly_singular);
}

// A row is exactly the sum of two other rows, but the right-hand side is not consistent with this.
// The warning must not depend on the requested accuracy.
TYPED_TEST(SeriesStepTest, WarnsOfEverySolutionWithSingularMatrix) {
  for (const double accuracy : {0.0, 1e-10, 1e-8, 1e-4}) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      SCOPED_TRACE(::testing::Message() << "accuracy " << accuracy << ", seed " << seed);
      StepRequest request = this->Request();
      request.accuracy = accuracy;
      auto a = Random<TypeParam>(kN, kN, seed);
      for (auto& value : a) value = TypeParam(std::round(std::real(value) * 1024) / 1024);
      Series<TypeParam> series(*DeviceUnderTest());
      auto b = Random<TypeParam>(kN, 1, seed + 100);
      ASSERT_OK(series.Step(a, b, request));
      auto singular = a;
      for (int64_t j = 0; j < kN; ++j) singular[j * kN] = singular[1 + j * kN] + a[2 + j * kN];
      b[0] = b[1] + b[2] + TypeParam(1);
      ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary, series.Step(singular, b, request));
      EXPECT_TRUE(!summary.solved || summary.nearly_singular)
          << "amplification " << summary.amplification << ", error " << summary.backward_error;
    }
  }
}

// The requested accuracy is too low to determine X. It is tightened, without a new factorization.
TYPED_TEST(SeriesStepTest, TightensAccuracyIfXMayBeInaccurate) {
  auto a = Random<TypeParam>(kN, kN, 3);
  for (int64_t i = 0; i < kN; ++i) a[i] = a[i + kN] + 1e-7 * a[i];  // condition above 1e8
  StepRequest request = this->Request();
  request.accuracy = 1e-8;
  ASSERT_OK(this->series_->Step(a, Random<TypeParam>(kN, 1, 5), request));
  const auto b = Random<TypeParam>(kN, 1, 6);
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary,
                       this->series_->Step(Changed(a, 1e-11, 4), b, request));
  EXPECT_EQ(summary.new_iterations, 0);
  EXPECT_FALSE(summary.nearly_singular);
  EXPECT_GT(summary.amplification, 1e6);
  EXPECT_LT(summary.amplification * summary.backward_error, 0.01);
}

TYPED_TEST(SeriesStepTest, StoresSparseMatricesAsSparse) {
  StepRequest request = this->Request();
  request.sparse = true;
  std::vector<TypeParam> a;
  for (const double x : RandomSparse(kN, 0.1, 3)) a.push_back(x);
  const auto b = Random<TypeParam>(kN, 1, 5);
  ASSERT_OK(this->series_->Step(a, b, request));
  for (auto& x : a) x *= 1 + 1e-5;
  a[0] *= 1 + 1e-4;
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary, this->series_->Step(a, b, request));
  EXPECT_EQ(summary.new_iterations, 0);
  EXPECT_LE(BackwardError(a, kN, Op::kNone, this->series_->x(), b, 1), 1.1 * kDefaultAccuracy);
  EXPECT_TRUE(this->series_->matrix()->sparse_matrix());
  EXPECT_FALSE(this->series_->matrix()->matrix());
  const auto other = Random<TypeParam>(kN, 1, 6);
  ASSERT_OK(this->series_->Step(std::nullopt, other, request));
  EXPECT_LE(BackwardError(a, kN, Op::kNone, this->series_->x(), other, 1), 1.1 * kDefaultAccuracy);
}

TYPED_TEST(SeriesStepTest, ReachesAccuracyOfRightHandSideWithSinglePrecisionFactor) {
  StepRequest request = this->Request();
  request.factor_dtype = kIsComplex<TypeParam> ? DType::kComplex64 : DType::kFloat32;
  auto a = Random<TypeParam>(kN, kN, 3);
  for (int step = 0; step < 3; ++step) {
    const auto b = Random<TypeParam>(kN, 1, 5 + step);
    ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary, this->series_->Step(a, b, request));
    EXPECT_TRUE(summary.accurate);
    EXPECT_LE(BackwardError(a, kN, Op::kNone, this->series_->x(), b, 1), 1.1 * kDefaultAccuracy);
    a = Changed(a, 1e-4, 30 + step);
  }
  request.rhs_dtype = request.factor_dtype;
  const std::vector<TypeParam> b = Rounded(Random<TypeParam>(kN, 1, 9), request.rhs_dtype);
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary, this->series_->Step(a, b, request));
  EXPECT_TRUE(summary.accurate);
  EXPECT_GT(summary.backward_error, 1e-12);  // due to rounding X to the type of B
  EXPECT_LE(summary.backward_error, std::sqrt(static_cast<double>(kN)) * 0x1p-24);
}

TYPED_TEST(SeriesStepTest, ReportsInaccurateSolutions) {
  StepRequest request = this->Request();
  const auto a = Random<TypeParam>(kN, kN, 3);
  ASSERT_OK(this->series_->Step(a, Random<TypeParam>(kN, 1, 5), request));
  request.max_iterations = 1;
  request.accuracy = kRoundoff / 1024;  // means roundoff, which one solve may not reach
  const auto b = Random<TypeParam>(kN, 1, 6);
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary,
                       this->series_->Step(std::nullopt, b, request));
  EXPECT_EQ(summary.accurate, summary.backward_error <= kRoundoff);
  request.accuracy = 1e-3;
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary coarse,
                       this->series_->Step(Changed(a, 1e-5, 8), b, request));
  EXPECT_TRUE(coarse.accurate);
  EXPECT_EQ(coarse.old_iterations, 0);  // the previous X is accurate enough
}

TYPED_TEST(SeriesStepTest, SolvesNearTheEndsOfTheRange) {
  StepRequest request = this->Request();
  for (const double scale : {0x1p-1000, 0x1p1010}) {
    Series<TypeParam> series(*DeviceUnderTest());
    auto a = Random<TypeParam>(kN, kN, 3);
    for (auto& x : a) x *= scale;
    auto b = Random<TypeParam>(kN, 1, 5);
    for (auto& x : b) x *= scale;
    for (int step = 0; step < 2; ++step) {
      ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary, series.Step(a, b, request));
      EXPECT_TRUE(summary.accurate) << scale << " " << summary.backward_error;
      for (auto& x : a) x *= 1 + 1e-5;
    }
  }
}

TYPED_TEST(SeriesStepTest, ReportsPositionOfNonFiniteEntries) {
  StepRequest request = this->Request();
  auto a = Random<TypeParam>(kN, kN, 3);
  auto b = Random<TypeParam>(kN, 1, 5);
  ASSERT_OK(this->series_->Step(a, b, request));
  b[7] = std::numeric_limits<double>::infinity();
  EXPECT_THAT(this->series_->Step(a, b, request),
              FailsWith(absl::StatusCode::kInvalidArgument, "right-hand side"));
  b[7] = 1;
  a[3] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(this->series_->Step(a, b, request),
              FailsWith(absl::StatusCode::kInvalidArgument, "matrix"));
}

TYPED_TEST(SeriesStepTest, StopsBetweenIterations) {
  StepRequest request = this->Request();
  const auto a = Random<TypeParam>(kN, kN, 3);
  const auto b = Random<TypeParam>(kN, 1, 5);
  ASSERT_OK(this->series_->Step(a, b, request));
  int polls = 0;
  const auto stop = [&] { return ++polls > 3; };
  EXPECT_THAT(this->series_->Step(Changed(a, 1e-2, 4), b, request, stop),
              FailsWith(absl::StatusCode::kCancelled, "stopped"));
}

}  // namespace
}  // namespace crout::testing::series_steps::series_step_test
