// SPDX-License-Identifier: Apache-2.0

// Tests reciprocal condition estimates against exact inverses (GET06), and determinants against
// known ones.
#include <cmath>
#include <numbers>
#include <span>

#include "kernels/host/device/host_device.h"
#include "kernels/jobs/factorize.h"
#include "kernels/numerics/norm_estimator.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::condition_test {
namespace {

class ConditionTest : public ::testing::TestWithParam<std::string> {
 protected:
  const std::unique_ptr<Device> device_ = host::MakeDevice({});
  JobRunner runner_{*device_};
};

TEST_P(ConditionTest, EstimatesNearTheExactValue) {
  for (const char* name : {"random", "diagonally_dominant", "upper_triangular", "graded", "shift",
                           "condition_sqrt", "near_underflow_f64", "near_overflow_f64"}) {
    for (const int64_t n : GallerySizes()) {
      SCOPED_TRACE(name + std::to_string(n));
      const HostMatrix a = GalleryNamed(name).make(n);
      FactorRequest request;
      request.algorithm = GetParam();
      request.condition = true;
      ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a, n, request));
      ASSERT_TRUE(factor.summary.rcond.has_value());
      const double exact = ExactRcond(a, n);
      EXPECT_LT(RcondRatio(*factor.summary.rcond, exact), kThreshold);
      // The estimate of |A^-1| is a lower bound, so the estimate of rcond is an upper bound.
      EXPECT_GE(*factor.summary.rcond, exact * (1 - 1e-6));
    }
  }
}

TEST_P(ConditionTest, DetectsNearlySingularMatrix) {
  FactorRequest request;
  request.algorithm = GetParam();
  request.condition = true;
  const HostMatrix a = GalleryNamed("condition_inverse").make(33);
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a, 33, request));
  EXPECT_LT(*factor.summary.rcond, 1e-13);
  EXPECT_GT(*factor.summary.rcond, 1e-20);
}

TEST_P(ConditionTest, NeverExceedsOne) {
  // The factor rounds to 1, but the norm is less than 1.
  FactorRequest request;
  request.algorithm = GetParam();
  request.factor_dtype = DType::kFloat32;
  request.condition = true;
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor({1 - 0x1p-26}, 1, request));
  EXPECT_EQ(*factor.summary.rcond, 1);
}

TEST_P(ConditionTest, ReturnsZeroForSingularMatrix) {
  FactorRequest request;
  request.algorithm = GetParam();
  request.condition = true;
  const HostMatrix a = GalleryNamed("zero_last_column").make(10);
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a, 10, request));
  EXPECT_EQ(*factor.summary.rcond, 0);
}

// A matrix of order 25 that is large only in one direction. As a 5 x 5 grid, the direction is s
// s^T, which is antisymmetric in both coordinates.
TEST(NormEstimatorTest, FindsAntisymmetricDirection) {
  constexpr int kM = 5;
  constexpr double kLarge = 1e12;
  const double s[kM] = {0, 1, 0, -1, 0};
  const auto apply = [&](bool, std::span<double> x) {
    double product = 0;
    for (int j = 0; j < kM; ++j) {
      for (int i = 0; i < kM; ++i) product += s[i] * s[j] * x[i + j * kM];
    }
    for (int j = 0; j < kM; ++j) {
      for (int i = 0; i < kM; ++i) x[i + j * kM] += kLarge * product * s[i] * s[j];
    }
    return absl::OkStatus();
  };
  ASSERT_OK_AND_ASSIGN(const double estimate, EstimateNormOne<double>(kM * kM, apply));
  EXPECT_LE(estimate, 4 * kLarge + 1);
  EXPECT_GT(estimate, kLarge / 100);
}

TEST_P(ConditionTest, EstimatesOnlyOnRequest) {
  FactorRequest request;
  request.algorithm = GetParam();
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor({4}, 1, request));
  EXPECT_FALSE(factor.summary.rcond.has_value());
  EXPECT_FALSE(factor.summary.det_sign.has_value());
}

struct KnownDeterminant {
  HostMatrix a;
  int64_t n;
  double sign;
  double log_abs;
};

TEST_P(ConditionTest, ComputesKnownDeterminants) {
  const std::vector<KnownDeterminant> known = {
      {{}, 0, 1, 0},
      {{-3}, 1, -1, std::log(3)},
      {{1, 3, 2, 4}, 2, -1, std::numbers::ln2},
      {GalleryNamed("shift").make(10), 10, -1, 0},  // a cycle of even length
      {GalleryNamed("shift").make(33), 33, 1, 0},
      {GalleryNamed("gfpp").make(33), 33, 1, 32 * std::numbers::ln2},
      {GalleryNamed("frank").make(5), 5, 1, 0},
      {GalleryNamed("zero_first_column").make(5), 5, 0, -INFINITY},
  };
  for (const KnownDeterminant& k : known) {
    for (const EquilibrateMode mode : {EquilibrateMode::kOff, EquilibrateMode::kOn}) {
      SCOPED_TRACE(k.n);
      FactorRequest request;
      request.algorithm = GetParam();
      request.determinant = true;
      request.equilibrate = mode;
      ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(k.a, k.n, request));
      EXPECT_EQ(*factor.summary.det_sign, k.sign);
      if (std::isinf(k.log_abs)) {
        EXPECT_EQ(*factor.summary.det_log_abs, k.log_abs);
      } else {
        EXPECT_NEAR(*factor.summary.det_log_abs, k.log_abs, 1e-12);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ConditionTest, ::testing::Values("getrf", "cmpp"));

// Estimates the 1-norm of an n x n matrix.
absl::StatusOr<double> Estimate(const HostMatrix& m, int64_t n) {
  return EstimateNormOne<double>(n, [&](bool transpose, std::span<double> x) {
    const HostMatrix y =
        Multiply(m, n, transpose ? Op::kTranspose : Op::kNone, HostMatrix(x.begin(), x.end()), 1);
    std::copy(y.begin(), y.end(), x.begin());
    return absl::OkStatus();
  });
}

TEST(NormEstimatorTest, IsALowerBoundWithinAFactorOfThree) {
  for (const int64_t n : {1, 2, 3, 10, 50}) {
    for (int64_t seed = 0; seed < 20; ++seed) {
      const HostMatrix m = RandomMatrix(n, n, seed);
      ASSERT_OK_AND_ASSIGN(const double estimate, Estimate(m, n));
      EXPECT_LE(estimate, NormOne(m, n) * (1 + 1e-14));
      EXPECT_GE(estimate, NormOne(m, n) / 3);
    }
  }
}

TEST(NormEstimatorTest, ReturnsInfinityAfterNonFiniteProduct) {
  for (const double bad : {NAN, INFINITY}) {
    for (int at = 1;; ++at) {
      int products = 0;
      ASSERT_OK_AND_ASSIGN(const double estimate,
                           EstimateNormOne<double>(3, [&](bool, std::span<double> x) {
                             if (++products == at) x[1] = bad;
                             return absl::OkStatus();
                           }));
      if (products < at) break;  // each product has had a non-finite element
      EXPECT_EQ(estimate, INFINITY) << at;
    }
  }
}

TEST(NormEstimatorTest, ReturnsInfinityAfterOverflowAndForwardsErrors) {
  ASSERT_OK_AND_ASSIGN(const double estimate, Estimate({1e308, 1e308, 1e308, INFINITY}, 2));
  EXPECT_EQ(estimate, INFINITY);
  EXPECT_THAT(
      EstimateNormOne<double>(3, [](bool, std::span<double>) { return absl::CancelledError("c"); }),
      FailsWith(absl::StatusCode::kCancelled, "c"));
}

}  // namespace
}  // namespace crout::testing::condition_test
