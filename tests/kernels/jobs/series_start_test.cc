// SPDX-License-Identifier: Apache-2.0

// Tests the initial guess of a series step: an X0 from the caller, the previous X, or the factor
// applied to B.
#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "tests/kernels/jobs/series_step_testing.h"
#include "tests/support/ratios.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::series_steps::series_start_test {
namespace {

// B has one column in the first step and two in later steps, so that the previous X cannot be the
// initial guess.
template <class T>
class SeriesStartTest : public SeriesStepTest<T> {
 protected:
  void Begin(Series<T>& series, const StepRequest& request) {
    const std::vector<T> one(b_.begin(), b_.begin() + kN);
    ASSERT_OK(series.Step(a_, one, request));
  }
  void ExpectSolved(const Series<T>& series) {
    EXPECT_LE(BackwardError(next_, kN, Op::kNone, series.x(), b_, kNrhs), 1.1 * kDefaultAccuracy);
  }
  std::vector<T> Scaled(std::vector<T> x, double factor) {
    for (T& v : x) v *= factor;
    return x;
  }

  const std::vector<T> a_ = Random<T>(kN, kN, 3);
  const std::vector<T> next_ = Changed(a_, 1e-4, 4);
  const std::vector<T> b_ = Random<T>(kN, kNrhs, 5);
};

TYPED_TEST_SUITE(SeriesStartTest, Types);

TYPED_TEST(SeriesStartTest, NeedsNoIterationIfStartIsTheSolution) {
  for (const Layout layout : {Layout::kColumnMajor, Layout::kRowMajor}) {
    for (const bool single : {false, true}) {
      StepRequest request = this->Request();
      request.x0_layout = layout;
      if (single)
        request.rhs_dtype = IsComplex(request.rhs_dtype) ? DType::kComplex64 : DType::kFloat32;
      Series<TypeParam> cold(*DeviceUnderTest());
      this->Begin(cold, request);
      ASSERT_OK(cold.Step(this->next_, this->b_, request));
      Series<TypeParam> series(*DeviceUnderTest());
      this->Begin(series, request);
      ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary,
                           series.StepFrom(cold.x(), this->next_, this->b_, request));
      EXPECT_EQ(summary.old_iterations, 0);
      EXPECT_EQ(summary.new_iterations, 0);
      EXPECT_TRUE(summary.accurate);
      EXPECT_EQ(series.x(), cold.x());
      // The next step starts from this X.
      ASSERT_OK_AND_ASSIGN(const SeriesStepSummary same,
                           series.Step(std::nullopt, this->b_, request));
      EXPECT_EQ(same.old_iterations, 0);
    }
  }
}

TYPED_TEST(SeriesStartTest, IgnoresStartsThatAreNoBetterThanZero) {
  const StepRequest request = this->Request();
  Series<TypeParam> cold(*DeviceUnderTest());
  this->Begin(cold, request);
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary expected, cold.Step(this->next_, this->b_, request));
  EXPECT_GE(expected.old_iterations, 2);
  for (const double factor : {0.0, -1.0, 1e3, 1e200, 1e300}) {
    Series<TypeParam> series(*DeviceUnderTest());
    this->Begin(series, request);
    ASSERT_OK_AND_ASSIGN(
        const SeriesStepSummary summary,
        series.StepFrom(this->Scaled(cold.x(), factor), this->next_, this->b_, request));
    EXPECT_EQ(summary.old_iterations, expected.old_iterations) << factor;
    EXPECT_EQ(summary.new_iterations, 0) << factor;
    EXPECT_EQ(series.x(), cold.x()) << factor;
  }
}

TYPED_TEST(SeriesStartTest, ChoosesTheStartOfEachColumnSeparately) {
  const StepRequest request = this->Request();
  Series<TypeParam> cold(*DeviceUnderTest());
  this->Begin(cold, request);
  ASSERT_OK(cold.Step(this->next_, this->b_, request));
  for (const int64_t bad : {0, 1}) {
    std::vector<TypeParam> x0 = cold.x();
    for (int64_t i = 0; i < kN; ++i) x0[bad * kN + i] *= 1e200;
    Series<TypeParam> series(*DeviceUnderTest());
    this->Begin(series, request);
    ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary,
                         series.StepFrom(x0, this->next_, this->b_, request));
    EXPECT_EQ(summary.new_iterations, 0);
    EXPECT_TRUE(summary.accurate);
    this->ExpectSolved(series);
  }
}

TYPED_TEST(SeriesStartTest, StaysAccurateWithPoorStart) {
  const StepRequest request = this->Request();
  Series<TypeParam> cold(*DeviceUnderTest());
  this->Begin(cold, request);
  ASSERT_OK(cold.Step(this->next_, this->b_, request));
  for (const double factor : {0.1, 1.5}) {  // starts whose residual is only slightly smaller than B
    Series<TypeParam> series(*DeviceUnderTest());
    this->Begin(series, request);
    ASSERT_OK_AND_ASSIGN(
        const SeriesStepSummary summary,
        series.StepFrom(this->Scaled(cold.x(), factor), this->next_, this->b_, request));
    EXPECT_EQ(summary.new_iterations, 0);
    EXPECT_GE(summary.old_iterations, 1);
    this->ExpectSolved(series);
  }
}

TYPED_TEST(SeriesStartTest, StaysAccurateIfPreviousSolutionHasAnotherMagnitude) {
  const StepRequest request = this->Request();
  ASSERT_OK(this->series_->Step(this->a_, this->Scaled(this->b_, 1e100), request));
  // The factor belongs to this matrix, so that no new factor can improve the result.
  ASSERT_OK_AND_ASSIGN(const SeriesStepSummary summary,
                       this->series_->Step(std::nullopt, this->b_, request));
  EXPECT_TRUE(summary.accurate);
  EXPECT_LE(BackwardError(this->a_, kN, Op::kNone, this->series_->x(), this->b_, kNrhs),
            1.1 * kDefaultAccuracy);
}

TYPED_TEST(SeriesStartTest, RefusesNonFiniteStartEvenIfNoneIsNeeded) {
  const StepRequest request = this->Request();
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()}) {
    std::vector<TypeParam> x0(kNrhs * kN);
    x0[kN + 7] = bad;
    Series<TypeParam> series(*DeviceUnderTest());
    for (int step = 0; step < 2; ++step) {
      EXPECT_THAT(series.StepFrom(x0, this->a_, this->b_, request),
                  FailsWith(absl::StatusCode::kInvalidArgument,
                            "start has a NaN or Inf at row 7, column 1"));
      ASSERT_OK(series.Step(this->a_, this->b_, request));
    }
  }
}

TYPED_TEST(SeriesStartTest, RefactoringGivesTheSameBitsWithAndWithoutStart) {
  StepRequest request = this->Request();
  request.max_iterations = 0;
  Series<TypeParam> without(*DeviceUnderTest());
  ASSERT_OK(without.Step(this->a_, this->b_, request));
  ASSERT_OK_AND_ASSIGN(
      const SeriesStepSummary summary,
      this->series_->StepFrom(Random<TypeParam>(kN, kNrhs, 9), this->a_, this->b_, request));
  EXPECT_EQ(summary.old_iterations, 0);
  EXPECT_EQ(this->series_->x(), without.x());
}

}  // namespace
}  // namespace crout::testing::series_steps::series_start_test
