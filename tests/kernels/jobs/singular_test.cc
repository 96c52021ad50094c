// SPDX-License-Identifier: Apache-2.0

// Tests that singular matrices and factors that overflow are reported in the result.
#include <cmath>

#include "kernels/host/device/host_device.h"
#include "kernels/jobs/factorize.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::singular_test {
namespace {

class SingularTest : public ::testing::TestWithParam<const char*> {
 protected:
  FactorRequest Request() const {
    FactorRequest request;
    request.algorithm = GetParam();
    request.condition = request.determinant = true;
    return request;
  }

  const std::unique_ptr<Device> device_ = host::MakeDevice({});
  JobRunner runner_{*device_};
};

TEST_P(SingularTest, ReportsSingularMatrixAndRefusesSolves) {
  for (const char* name : {"zero", "zero_first_column", "zero_half_columns", "zero_last_column"}) {
    for (const EquilibrateMode mode : {EquilibrateMode::kOff, EquilibrateMode::kAuto}) {
      const GalleryKind& kind = GalleryNamed(name);
      FactorRequest request = Request();
      request.equilibrate = mode;
      ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(kind.make(10), 10, request));
      EXPECT_EQ(factor.summary.info, kind.singular_at(10));
      EXPECT_EQ(*factor.summary.rcond, 0);
      EXPECT_EQ(*factor.summary.det_sign, 0);
      EXPECT_THAT(runner_.Solve(factor, HostMatrix(10, 1.0), 1, {}),
                  FailsWith(absl::StatusCode::kFailedPrecondition,
                            "pivot " + std::to_string(kind.singular_at(10)) + " (1-based)"));
    }
  }
}

TEST_P(SingularTest, ReportsZeroRow) {
  HostMatrix a = GalleryNamed("diagonally_dominant").make(5);
  for (int64_t j = 0; j < 5; ++j) a[2 + j * 5] = 0;
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a, 5, Request()));
  EXPECT_EQ(factor.summary.info, 5);
}

TEST_P(SingularTest, ReportsOverflowingGrowth) {
  // The factor grows by 2^199 and overflows in float32.
  FactorRequest request = Request();
  request.factor_dtype = DType::kFloat32;
  const int64_t n = 200;
  const HostMatrix a = GalleryNamed("gfpp").make(n);
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a, n, request));
  EXPECT_EQ(factor.summary.info, 0);
  EXPECT_EQ(factor.summary.pivot_growth, INFINITY);
  EXPECT_EQ(*factor.summary.rcond, 0);
  EXPECT_FALSE(factor.summary.det_sign.has_value());
  EXPECT_FALSE(factor.summary.det_log_abs.has_value());
  SolveRequest solve;
  solve.error_bound = true;
  ASSERT_OK_AND_ASSIGN(const Solution solution,
                       runner_.Solve(factor, RandomMatrix(n, 1, 1), 1, solve));
  EXPECT_EQ(*solution.summary.forward_error_bound, INFINITY);
  // The error is NaN, or large if a division by Inf gave zero.
  EXPECT_FALSE(*solution.summary.backward_error < 1e-6);
}

// A matrix whose second pivot column is subnormal and needs an interchange of rows of L.
HostMatrix SubnormalColumn() {
  const double s = 0x1p-1060;
  return {2, 1, 0.5, 0, s, 3 * s, 0, 2 * s, 5 * s};
}

TEST_P(SingularTest, DoesNotTreatSubnormalPivotsAsZero) {
  const HostMatrix a = SubnormalColumn();
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a, 3, Request()));
  ASSERT_OK_AND_ASSIGN(const HostFactor parts, runner_.Download(factor));
  EXPECT_EQ(factor.summary.info, 0);
  // OpenBLAS multiplies by the reciprocal of the pivot, which overflows. The reported growth and
  // condition must then show that the factor is useless.
  if (factor.summary.pivot_growth == INFINITY) {
    EXPECT_EQ(*factor.summary.rcond, 0);
    return;
  }
  EXPECT_LT(FactorRatio(a, 3, parts.lu, parts.ipiv, factor.summary.unit_diagonal, DType::kFloat64),
            kThreshold);
}

TEST_P(SingularTest, AvoidsSubnormalPivotsByEquilibration) {
  const HostMatrix a = SubnormalColumn();
  FactorRequest request = Request();
  request.equilibrate = EquilibrateMode::kAuto;
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a, 3, request));
  EXPECT_EQ(factor.summary.info, 0);
  EXPECT_LT(factor.summary.pivot_growth, 10);
  EXPECT_GT(*factor.summary.rcond, 0);
  EXPECT_LT(*factor.summary.rcond, 1e-300);
  EXPECT_GT(*factor.summary.rcond_scaled, 1e100 * *factor.summary.rcond);
}

TEST_P(SingularTest, OmitsBoundAndDeterminantAfterOverflow) {
  // The element u_22 = -6e38 overflows float32.
  const HostMatrix a = {3e38, -3e38, 3e38, 3e38};
  FactorRequest request = Request();
  request.matrix_dtype = request.factor_dtype = DType::kFloat32;
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a, 2, request));
  EXPECT_EQ(factor.summary.pivot_growth, INFINITY);
  EXPECT_FALSE(factor.summary.det_sign.has_value());
  SolveRequest solve;
  solve.dtype = DType::kFloat32;
  solve.error_bound = true;
  ASSERT_OK_AND_ASSIGN(const Solution solution, runner_.Solve(factor, {1, 1}, 1, solve));
  EXPECT_EQ(*solution.summary.forward_error_bound, INFINITY);
}

INSTANTIATE_TEST_SUITE_P(All, SingularTest, ::testing::Values("getrf", "gem", "cmpp"));

// Without pivoting, a zero pivot does not show that A is singular.
class WithoutPivotingTest : public ::testing::TestWithParam<const char*> {};

TEST_P(WithoutPivotingTest, OmitsConditionAndDeterminantAfterZeroPivot) {
  const std::unique_ptr<Device> device = host::MakeDevice({});
  JobRunner runner(*device);
  FactorRequest request;
  request.algorithm = GetParam();
  request.condition = request.determinant = true;
  // The elimination with pivot 1 makes pivot 2 zero, although the matrix is nonsingular.
  ASSERT_OK_AND_ASSIGN(const Factorization factor,
                       runner.Factor({2, 4, 1, 1, 2, 1, 1, 1, -1}, 3, request));
  EXPECT_EQ(factor.summary.info, 2);
  EXPECT_EQ(factor.summary.singular, SingularReason::kZeroPivot);
  EXPECT_FALSE(factor.summary.rcond.has_value());
  EXPECT_FALSE(factor.summary.det_sign.has_value());
  EXPECT_FALSE(factor.summary.det_log_abs.has_value());
  EXPECT_THAT(runner.Solve(factor, {1, 1, 1}, 1, {}),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        std::string("pivot 2 (1-based) is zero (or too small) and ") + GetParam() +
                            " does not pivot"));
}

INSTANTIATE_TEST_SUITE_P(All, WithoutPivotingTest, ::testing::Values("cm", "icm", "block_lu"));

}  // namespace
}  // namespace crout::testing::singular_test
