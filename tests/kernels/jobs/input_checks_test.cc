// SPDX-License-Identifier: Apache-2.0

// Tests that NaN, Inf, overflow and wrong shapes are refused with their position, and that similar
// valid input is accepted.
#include "kernels/jobs/input_checks.h"

#include <cmath>
#include <limits>

#include "kernels/host/device/host_device.h"
#include "kernels/jobs/factorize.h"
#include "kernels/jobs/solve.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::input_checks_test {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;
const double kNan = std::nan("");
const double kInf = std::numeric_limits<double>::infinity();

class InputChecksTest : public ::testing::Test {
 protected:
  const std::unique_ptr<Device> device_ = host::MakeDevice({});
  JobRunner runner_{*device_};
};

TEST_F(InputChecksTest, ReportsFirstNonFiniteEntryInPayloadOrder) {
  for (const double bad : {kNan, kInf, -kInf}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      for (const EquilibrateMode mode : {EquilibrateMode::kOff, EquilibrateMode::kAuto}) {
        const int64_t n = 700;  // more than one block of the scan
        HostMatrix a = RandomMatrix(n, n, 1);
        a[690 + 2 * n] = bad;
        a[5 + 600 * n] = bad;
        FactorRequest request;
        request.matrix_dtype = dtype;
        request.equilibrate = mode;
        EXPECT_THAT(runner_.Factor(a, n, request),
                    FailsWith(kInvalid,
                              "matrix has a NaN or Inf at row 690, column 2 (0-based), the "
                              "first one sent"));
        request.layout = Layout::kRowMajor;
        EXPECT_THAT(runner_.Factor(a, n, request),
                    FailsWith(kInvalid, "at row 5, column 600 (0-based)"));
      }
    }
  }
}

TEST_F(InputChecksTest, FindsNanAtEveryPosition) {
  for (const int64_t n : {1, 2, 9, 17}) {
    for (int64_t k = 0; k < n * n; ++k) {
      HostMatrix a = RandomMatrix(n, n, 1);
      a[k] = kNan;
      EXPECT_THAT(runner_.Factor(a, n, {}),
                  FailsWith(kInvalid, "row " + std::to_string(k % n) + ", column " +
                                          std::to_string(k / n) + " "));
    }
  }
}

TEST_F(InputChecksTest, ReportsOverflowOfConversion) {
  const double largest = LargestConvertible(DType::kFloat32);
  EXPECT_TRUE(std::isfinite(static_cast<float>(largest)));
  EXPECT_FALSE(std::isfinite(static_cast<float>(std::nextafter(largest, kInf))));
  HostMatrix a = {1, 2, 3, 4};
  FactorRequest request;
  request.factor_dtype = DType::kFloat32;
  a[2] = largest;
  EXPECT_OK(runner_.Factor(a, 2, request));
  a[2] = -std::nextafter(largest, kInf);
  EXPECT_THAT(runner_.Factor(a, 2, request),
              FailsWith(kInvalid, "matrix has an entry that overflows f32 at row 0, column 1"));
  request.layout = Layout::kRowMajor;
  EXPECT_THAT(runner_.Factor(a, 2, request),
              FailsWith(kInvalid, "overflows f32 at row 0, column 1"));
  request.equilibrate = EquilibrateMode::kAuto;
  EXPECT_OK(runner_.Factor(a, 2, request));
}

TEST_F(InputChecksTest, RefusesUnderflowOfConversion) {
  const double least = std::numeric_limits<float>::min();
  FactorRequest request;
  request.factor_dtype = DType::kFloat32;
  EXPECT_OK(runner_.Factor({least, 0, 0, least}, 2, request));
  EXPECT_OK(runner_.Factor({1, 0, 0, 1e-60}, 2, request)) << "beside a 1";
  EXPECT_OK(runner_.Factor({0, 0, 0, 0}, 2, request)) << "nothing underflows";
  const double tiny = std::nextafter(least, 0);
  EXPECT_THAT(runner_.Factor({tiny, 0, 0, tiny}, 2, request),
              FailsWith(kInvalid, "underflows in f32"));
  request.equilibrate = EquilibrateMode::kAuto;
  EXPECT_OK(runner_.Factor({1e-60, 0, 0, 1e-60}, 2, request));
  request = {};
  EXPECT_OK(runner_.Factor({tiny, 0, 0, tiny}, 2, request));
}

TEST_F(InputChecksTest, AcceptsFiniteEntriesWithOverflowingSums) {
  FactorRequest request;
  ASSERT_OK_AND_ASSIGN(const Factorization factor,
                       runner_.Factor({1.5e308, 1e308, 1e308, 1.5e308}, 2, request));
  EXPECT_EQ(factor.summary.norm_one, kInf);
  ASSERT_OK_AND_ASSIGN(const Solution solution, runner_.Solve(factor, {1e300, 2e300}, 1, {}));
  EXPECT_LT(*solution.summary.backward_error, 1e-15);
}

TEST_F(InputChecksTest, RefusesNonFiniteRightHandSide) {
  FactorRequest request;
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor({2, 1, 1, 3}, 2, request));
  SolveRequest solve;
  for (const bool verify : {true, false}) {
    solve.verify = verify;
    EXPECT_THAT(runner_.Solve(factor, {1, 2, 3, kNan}, 2, solve),
                FailsWith(kInvalid, "right-hand side has a NaN or Inf at row 1, column 1"));
  }
}

TEST_F(InputChecksTest, RefusesRightHandSideThatOverflowsWhenScaled) {
  FactorRequest request;
  request.equilibrate = EquilibrateMode::kOn;
  ASSERT_OK_AND_ASSIGN(const Factorization small, runner_.Factor({1e-300, 0, 0, 1}, 2, request));
  ASSERT_OK_AND_ASSIGN(const Factorization large, runner_.Factor({1e300, 0, 0, 1}, 2, request));
  ASSERT_TRUE(small.summary.row_scaled && large.summary.row_scaled);
  for (const bool verify : {true, false}) {
    for (const Layout layout : {Layout::kColumnMajor, Layout::kRowMajor}) {
      SolveRequest solve;
      solve.verify = verify;
      solve.layout = layout;
      EXPECT_THAT(runner_.Solve(small, {1, 2, -1e20, 1}, 2, solve),
                  FailsWith(kInvalid, "largest entry has magnitude 1e+20, overflows when it is"));
      EXPECT_THAT(runner_.Solve(small, {1, 2, kNan, 1}, 2, solve),
                  FailsWith(kInvalid, "right-hand side has a NaN or Inf at row 0, column 1"));
      EXPECT_OK(runner_.Solve(small, {1e5, 1}, 1, solve));
      ASSERT_OK_AND_ASSIGN(const Solution x, runner_.Solve(large, {1e302, 1}, 1, solve));
      EXPECT_NEAR(x.x[0], 100, 1e-12);
      // The transposed system is scaled by the column scales, which are 1 here.
      solve.op = Op::kTranspose;
      EXPECT_OK(runner_.Solve(small, {1e5, 1}, 1, solve));
      EXPECT_OK(runner_.Solve(large, {1e302, 1}, 1, solve));
    }
  }
}

TEST_F(InputChecksTest, AcceptsFloat64RightHandSideForFloat32Factor) {
  FactorRequest request;
  request.factor_dtype = DType::kFloat32;
  for (const EquilibrateMode equilibrate :
       {EquilibrateMode::kOff, EquilibrateMode::kAuto, EquilibrateMode::kOn}) {
    request.equilibrate = equilibrate;
    ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor({1e-3, 0, 0, 1}, 2, request));
    SolveRequest solve;
    for (const Op op : {Op::kNone, Op::kTranspose}) {
      solve.op = op;
      ASSERT_OK_AND_ASSIGN(const Solution x, runner_.Solve(factor, {1, 1e39}, 1, solve));
      EXPECT_NEAR(x.x[1], 1e39, 1e32);
    }
  }
}

TEST_F(InputChecksTest, RefusesWrongShapesAndSizes) {
  KernelTimings timings;
  ASSERT_OK_AND_ASSIGN(const FactorizeOptions options, runner_.Options(FactorRequest{}, 3));
  const auto factorize = [&](size_t bytes, int64_t rows, int64_t cols) {
    auto upload = device_->memory().Allocate(bytes);
    return Factorize(runner_.context(), *std::move(upload),
                     {nullptr, DType::kFloat64, Layout::kColumnMajor, rows, cols}, options,
                     JobRunner::NeverStop(), timings);
  };
  EXPECT_THAT(factorize(48, 2, 3), FailsWith(kInvalid, "2 x 3, not square"));
  EXPECT_THAT(factorize(64, 3, 3), FailsWith(kInvalid, "64 bytes; its shape needs 72"));
  EXPECT_THAT(factorize(0, -1, -1), FailsWith(kInvalid, "is negative or overflows"));
  EXPECT_OK(factorize(0, 0, 0));
}

TEST_F(InputChecksTest, ChecksPreconditionsOfSolves) {
  FactorRequest request;
  request.keep_matrix = false;
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor({2, 1, 1, 3}, 2, request));
  SolveRequest solve;
  EXPECT_THAT(runner_.Solve(factor, {1, 2}, 1, solve), FailsWith(kPrecondition, "was not kept"));
  solve.verify = false;
  ASSERT_OK_AND_ASSIGN(const Solution solution, runner_.Solve(factor, {3, 4}, 1, solve));
  EXPECT_FALSE(solution.summary.backward_error.has_value());
  EXPECT_NEAR(solution.x[0], 1, 1e-15);
  solve.max_refinement_steps = 1;
  EXPECT_THAT(runner_.Solve(factor, {1, 2}, 1, solve), FailsWith(kPrecondition, "was not kept"));

  KernelTimings timings;
  ASSERT_OK_AND_ASSIGN(SolveOptions options, runner_.Options(SolveRequest{}, factor.summary, 1));
  ASSERT_OK_AND_ASSIGN(Buffer three, device_->memory().Allocate(24));
  double out[3];
  EXPECT_THAT(Solve(runner_.context(), factor, std::move(three),
                    {nullptr, DType::kFloat64, Layout::kColumnMajor, 3, 1}, options,
                    reinterpret_cast<std::byte*>(out), JobRunner::NeverStop(), timings),
              FailsWith(kPrecondition, "3 rows; the factor has order 2"));
}

TEST_F(InputChecksTest, AcceptsEmptySystems) {
  FactorRequest request;
  request.condition = request.determinant = true;
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor({}, 0, request));
  EXPECT_EQ(factor.summary.info, 0);
  EXPECT_EQ(factor.summary.pivot_growth, 1);
  EXPECT_EQ(*factor.summary.rcond, 1);
  EXPECT_EQ(factor.parts.bytes(), 0u);
  SolveRequest solve;
  solve.error_bound = true;
  ASSERT_OK_AND_ASSIGN(const Solution none, runner_.Solve(factor, {}, 2, solve));
  EXPECT_EQ(*none.summary.backward_error, 0);
  ASSERT_OK_AND_ASSIGN(const Factorization one, runner_.Factor({2}, 1, {}));
  ASSERT_OK_AND_ASSIGN(const Solution no_rhs, runner_.Solve(one, {}, 0, solve));
  EXPECT_EQ(*no_rhs.summary.backward_error, 0);
}

}  // namespace
}  // namespace crout::testing::input_checks_test
