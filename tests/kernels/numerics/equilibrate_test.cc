// SPDX-License-Identifier: Apache-2.0

// Tests scaling by powers of two: when it is applied, and that solves and determinants do not
// depend on it.
#include "kernels/numerics/equilibrate.h"

#include <cmath>

#include "kernels/host/device/host_device.h"
#include "kernels/jobs/factorize.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::equilibrate_test {
namespace {

constexpr auto kAuto = EquilibrateMode::kAuto;

TEST(DecideScalingTest, FollowsLaqge) {
  const ScaleStats good{0.5, 0.5, 1, 0};
  EXPECT_FALSE(DecideScaling(kAuto, good, DType::kFloat64).any());
  EXPECT_TRUE(DecideScaling(EquilibrateMode::kOn, good, DType::kFloat64).rows);
  EXPECT_TRUE(DecideScaling(EquilibrateMode::kOn, good, DType::kFloat64).cols);
  EXPECT_TRUE(DecideScaling(kAuto, {0.09, 0.5, 1, 0}, DType::kFloat64).rows);
  EXPECT_FALSE(DecideScaling(kAuto, {0.09, 0.5, 1, 0}, DType::kFloat64).cols);
  EXPECT_TRUE(DecideScaling(kAuto, {0.5, 0.09, 1, 0}, DType::kFloat64).cols);
  EXPECT_TRUE(DecideScaling(kAuto, {1, 1, 1e35, 0}, DType::kFloat32).rows);
  EXPECT_FALSE(DecideScaling(kAuto, {1, 1, 1e35, 0}, DType::kFloat64).any());
  EXPECT_TRUE(DecideScaling(kAuto, {1, 1, 1e-35, 0}, DType::kFloat32).rows);
  EXPECT_FALSE(DecideScaling(EquilibrateMode::kOff, {0, 0, 0, 0}, DType::kFloat64).any());
  EXPECT_FALSE(DecideScaling(EquilibrateMode::kOn, {0, 0, 1, 3}, DType::kFloat64).any());
}

// diag(10^p) R diag(10^q): the rows and columns differ much in size.
HostMatrix BadlyScaled(int64_t n) {
  HostMatrix a = GalleryNamed("diagonally_dominant").make(n);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      a[i + j * n] *= std::ldexp(1.0, static_cast<int>((i * 37) % 101 - 50)) *
                      std::ldexp(1.0, static_cast<int>((j * 53) % 103 - 50));
    }
  }
  return a;
}

class EquilibrateTest : public ::testing::TestWithParam<const char*> {
 protected:
  const std::unique_ptr<Device> device_ = host::MakeDevice({});
  JobRunner runner_{*device_};
};

TEST_P(EquilibrateTest, SolvesBadlyScaledSystemAndKeepsDeterminant) {
  const int64_t n = 60;
  const HostMatrix a = BadlyScaled(n);
  FactorRequest request;
  request.algorithm = GetParam();
  request.determinant = request.condition = true;
  ASSERT_OK_AND_ASSIGN(const Factorization plain, runner_.Factor(a, n, request));
  request.equilibrate = kAuto;
  ASSERT_OK_AND_ASSIGN(const Factorization scaled, runner_.Factor(a, n, request));
  EXPECT_TRUE(scaled.summary.row_scaled);
  EXPECT_TRUE(scaled.summary.col_scaled);
  EXPECT_FALSE(plain.summary.row_scaled || plain.summary.col_scaled);
  EXPECT_EQ(scaled.summary.norm_one, plain.summary.norm_one);
  // rcond always refers to the unscaled matrix, like the norms in the summary.
  const double exact = ExactRcond(a, n);
  EXPECT_LT(exact, 1e-20);
  EXPECT_LT(RcondRatio(*scaled.summary.rcond, exact), kThreshold);
  EXPECT_LT(RcondRatio(*plain.summary.rcond, exact), kThreshold);
  EXPECT_GT(*scaled.summary.rcond_scaled, 1e-4);
  EXPECT_FALSE(plain.summary.rcond_scaled.has_value());
  EXPECT_EQ(*scaled.summary.det_sign, *plain.summary.det_sign);
  EXPECT_NEAR(*scaled.summary.det_log_abs, *plain.summary.det_log_abs, 1e-10);
  EXPECT_LT(scaled.summary.pivot_growth, 10);

  for (const Op op : {Op::kNone, Op::kTranspose}) {
    const HostMatrix b = RandomMatrix(n, 2, 3);
    SolveRequest solve;
    solve.op = op;
    solve.error_bound = true;
    ASSERT_OK_AND_ASSIGN(const Solution solution, runner_.Solve(scaled, b, 2, solve));
    EXPECT_LT(*solution.summary.backward_error, 1e-15);
    EXPECT_LT(BackwardError(a, n, op, solution.x, b, 2), 1e-15);
  }
}

// The matrix is far outside the range of its float32 factor.
TEST_P(EquilibrateTest, BringsFloat64IntoFloat32Range) {
  for (const char* name : {"near_overflow_f64", "near_underflow_f64"}) {
    const int64_t n = 33;
    const HostMatrix a = GalleryNamed(name).make(n);
    FactorRequest request;
    request.algorithm = GetParam();
    request.factor_dtype = DType::kFloat32;
    request.equilibrate = kAuto;
    request.condition = true;
    ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a, n, request));
    EXPECT_EQ(factor.summary.info, 0);
    EXPECT_LT(factor.summary.pivot_growth, 10);
    EXPECT_LT(RcondRatio(*factor.summary.rcond, ExactRcond(a, n)), kThreshold);
    EXPECT_LT(*factor.summary.quality, 1);
    const HostMatrix b = Multiply(a, n, Op::kNone, RandomMatrix(n, 1, 3), 1);
    SolveRequest solve;
    solve.max_refinement_steps = 10;
    ASSERT_OK_AND_ASSIGN(const Solution solution, runner_.Solve(factor, b, 1, solve));
    EXPECT_LT(BackwardError(a, n, Op::kNone, solution.x, b, 1), 1e-15) << name;
  }
}

TEST_P(EquilibrateTest, AutoDoesNotScaleAGoodMatrix) {
  const HostMatrix a = GalleryNamed("diagonally_dominant").make(20);
  FactorRequest request;
  request.algorithm = GetParam();
  request.equilibrate = kAuto;
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a, 20, request));
  EXPECT_FALSE(factor.summary.row_scaled || factor.summary.col_scaled);
  EXPECT_FALSE(bool{factor.scales()});
}

TEST_P(EquilibrateTest, FactorsTheScaledMatrix) {
  const int64_t n = 20;
  const HostMatrix a = BadlyScaled(n);
  FactorRequest request;
  request.algorithm = GetParam();
  request.equilibrate = EquilibrateMode::kOn;
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a, n, request));
  ASSERT_OK_AND_ASSIGN(const HostFactor parts, runner_.Download(factor));
  const double* scales = factor.scales().as<double>();  // memory of the host device is host memory
  HostMatrix as = a;
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) as[i + j * n] *= scales[i] * scales[n + j];
  }
  EXPECT_LT(FactorRatio(as, n, parts.lu, parts.ipiv, factor.summary.unit_diagonal, DType::kFloat64),
            kThreshold);
}

INSTANTIATE_TEST_SUITE_P(All, EquilibrateTest, ::testing::Values("getrf", "cmpp"));

}  // namespace
}  // namespace crout::testing::equilibrate_test
