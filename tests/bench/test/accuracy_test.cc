// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/crout_bench/accuracy.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/host/device/host_device.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::bench::accuracy_test {
namespace {

using ::crout::testing::FactorRequest;
using ::crout::testing::HostMatrix;
using ::crout::testing::JobRunner;
using ::crout::testing::RandomMatrix;
using ::testing::ElementsAre;

// Compares with the slow reference, for a unit diagonal in L and in U. One factor has a wrong
// element.
TEST(AccuracyTest, FactorRatioMatchesTheOracle) {
  const auto host = host::MakeDevice({});
  JobRunner runner(*host);
  for (const char* algorithm : {"getrf", "cmpp"}) {
    for (const int64_t n : {1, 2, 33, 70}) {
      const HostMatrix a = RandomMatrix(n, n, n);
      FactorRequest request;
      request.algorithm = algorithm;
      ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.Factor(a, n, request));
      ASSERT_OK_AND_ASSIGN(auto downloaded, runner.Download(factor));
      auto& [lu, ipiv, scales] = downloaded;
      const UnitDiagonal unit = factor.summary.unit_diagonal;
      for (const double error : {0.0, 1e-3}) {
        lu[n - 1] += error;
        const double expected = testing::FactorRatio(a, n, lu, ipiv, unit, DType::kFloat64);
        const FactorAccuracy accuracy = MeasureFactor(a, lu, ipiv, n, unit, DType::kFloat64);
        // Sums have different orders. Ratios of exact factors consist of roundoff, so their
        // difference may be as large.
        EXPECT_NEAR(accuracy.ratio, expected, error == 0 ? 0.5 : 1e-6 * expected) << algorithm << n;
        EXPECT_EQ(accuracy.max_abs_diff > 1e-5, error != 0) << algorithm << n;
      }
    }
  }
}

TEST(AccuracyTest, DetectsNan) {
  const double nan = std::nan("");
  const FactorAccuracy accuracy =
      MeasureFactor({2, 1, 1, 2}, {2, nan, 1, 1.5}, {1, 2}, 2, UnitDiagonal::kL, DType::kFloat64);
  EXPECT_TRUE(std::isnan(accuracy.ratio));
  EXPECT_TRUE(std::isnan(accuracy.max_abs_diff));
  EXPECT_TRUE(std::isnan(BackwardError({1, 0, 0, 1}, {1, nan}, {1, 1}, 2, 1, DType::kFloat64)));
}

TEST(AccuracyTest, BackwardErrorMatchesTheOracle) {
  const int64_t n = 20;
  const HostMatrix a = RandomMatrix(n, n, 1);
  const HostMatrix x = RandomMatrix(n, 3, 2);
  HostMatrix b = testing::Multiply(a, n, Op::kNone, x, 3);
  EXPECT_LT(BackwardError(a, x, b, n, 3, DType::kFloat64), 1e-15);
  b[n] += 0.25;
  EXPECT_NEAR(BackwardError(a, x, b, n, 3, DType::kFloat64),
              testing::BackwardError(a, n, Op::kNone, x, b, 3), 1e-12);
}

// For z = 3 + 4i, the modulus differs from the parts and from |Re| + |Im|.
TEST(AccuracyTest, MeasuresComplexNumbersByTheirModulus) {
  constexpr DType kComplex = DType::kComplex128;
  // A = [2, 0; 2z, 1] without interchanges: L = [1, 0; z, 1], U = [2, 0; 0, 1].
  const std::vector<double> a{2, 0, 6, 8, 0, 0, 1, 0};
  std::vector<double> lu{2, 0, 3, 4, 0, 0, 1, 0};
  EXPECT_EQ(MeasureFactor(a, lu, {1, 2}, 2, UnitDiagonal::kL, kComplex).ratio, 0);
  lu[6] += 3;
  lu[7] += 4;  // an error of modulus 5
  const FactorAccuracy wrong = MeasureFactor(a, lu, {1, 2}, 2, UnitDiagonal::kL, kComplex);
  EXPECT_DOUBLE_EQ(wrong.max_abs_diff, 5);
  EXPECT_DOUBLE_EQ(wrong.ratio, 5 / (2 * 12 * UnitRoundoff(kComplex)));
  // x = (1, 1), and one element of b has the error z. |A| = 11 and |b| = |2z + 1 + z| in infinity
  // norms.
  const double norm_b = std::hypot(10, 12);
  EXPECT_DOUBLE_EQ(BackwardError(a, {1, 0, 1, 0}, {2, 0, 10, 12}, 2, 1, kComplex),
                   5 / (11 + norm_b));
  EXPECT_THAT(CoarsePattern({0, 1, 0, 0, 0, 0, 3, 4}, 2, kComplex, 2).rows,
              ElementsAre("a.", ".z"));
}

TEST(AccuracyTest, PatternsShowTheLargestMagnitudeOfEachCell) {
  // The rows are 1 0 0 -100, 0 10 0 0, 0 0 0 0, and 1 1 1 1.
  const std::vector<double> a{1, 0, 0, 1, 0, 10, 0, 1, 0, 0, 0, 1, -100, 0, 0, 1};
  const MagnitudePattern coarse = CoarsePattern(a, 4, DType::kFloat64, 2);
  EXPECT_THAT(coarse.rows, ElementsAre("nz", "aa"));
  EXPECT_EQ(coarse.low, 0);
  EXPECT_EQ(coarse.high, 2);
  EXPECT_THAT(CoarsePattern(a, 4, DType::kFloat64, 100).rows,
              ElementsAre("a..z", ".n..", "....", "aaaa"));
  EXPECT_THAT(CoarsePattern({7}, 1, DType::kFloat64, 3).rows, ElementsAre("a"));
}

TEST(AccuracyTest, PatternsMarkZeroAndNonFiniteCells) {
  const double nan = std::nan("");
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_THAT(CoarsePattern({0, 0, 0, 0}, 2, DType::kFloat64, 2).rows, ElementsAre("..", ".."));
  EXPECT_THAT(CoarsePattern({nan, inf, 1, 0}, 2, DType::kFloat64, 2).rows, ElementsAre("!a", "!."));
  EXPECT_THAT(CoarsePattern({nan, inf, 1, 0}, 2, DType::kFloat64, 1).rows, ElementsAre("!"));
}

}  // namespace
}  // namespace crout::bench::accuracy_test
