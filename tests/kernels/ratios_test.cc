// SPDX-License-Identifier: Apache-2.0

// Tests that the acceptance ratios accept correct results and reject wrong ones.
#include "tests/support/ratios.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include <gtest/gtest.h>

namespace crout::testing::ratios_test {
namespace {

constexpr int64_t kN = 3;
// The factor of A = P^T L U with rows 0 and 2 exchanged, in getrf's storage. A is exact in float32
// and float64.
const HostMatrix kLu = {4, 0.5, 0.25, 2, 8, 0.5, 1, 2, 16};
const std::vector<int64_t> kIpiv = {3, 2, 3};

HostMatrix Product(bool unit_in_l) {
  HostMatrix a(kN * kN, 0.0);
  for (int64_t i = 0; i < kN; ++i) {
    for (int64_t j = 0; j < kN; ++j) {
      for (int64_t k = 0; k <= std::min(i, j); ++k) {
        const double l = unit_in_l && i == k ? 1 : kLu[i + k * kN];
        const double u = !unit_in_l && k == j ? 1 : kLu[k + j * kN];
        a[i + j * kN] += l * u;
      }
    }
  }
  for (int64_t j = 0; j < kN; ++j) std::swap(a[0 + j * kN], a[2 + j * kN]);
  return a;
}

// Parameterized by the function: FactorRatio or ProbedFactorRatio.
class FactorRatioTest : public ::testing::TestWithParam<decltype(&FactorRatio<double>)> {
 protected:
  static double Ratio(const HostMatrix& a, const HostMatrix& lu, const std::vector<int64_t>& ipiv,
                      UnitDiagonal unit_diagonal, DType dtype) {
    return GetParam()(a, kN, lu, ipiv, unit_diagonal, dtype);
  }
};

TEST_P(FactorRatioTest, AcceptsBothUnitDiagonals) {
  EXPECT_EQ(Ratio(Product(true), kLu, kIpiv, UnitDiagonal::kL, DType::kFloat64), 0);
  EXPECT_EQ(Ratio(Product(false), kLu, kIpiv, UnitDiagonal::kU, DType::kFloat64), 0);
}

TEST_P(FactorRatioTest, RejectsPerturbedFactor) {
  for (const bool unit_in_l : {true, false}) {
    for (size_t k = 0; k < kLu.size(); ++k) {
      HostMatrix lu = kLu;
      lu[k] *= 1 + 1e-11;
      EXPECT_GT(Ratio(Product(unit_in_l), lu, kIpiv,
                      unit_in_l ? UnitDiagonal::kL : UnitDiagonal::kU, DType::kFloat64),
                kThreshold)
          << k;
    }
  }
}

TEST_P(FactorRatioTest, RejectsWrongPivotsWrongDiagonalAndNan) {
  const HostMatrix a = Product(true);
  EXPECT_GT(Ratio(a, kLu, {1, 2, 3}, UnitDiagonal::kL, DType::kFloat32), kThreshold);
  EXPECT_GT(Ratio(a, kLu, kIpiv, UnitDiagonal::kU, DType::kFloat32), kThreshold);
  HostMatrix lu = kLu;
  lu[8] = std::nan("");
  EXPECT_GT(Ratio(a, lu, kIpiv, UnitDiagonal::kL, DType::kFloat32), kThreshold);
}

TEST_P(FactorRatioTest, UsesEpsilonOfTheType) {
  HostMatrix lu = kLu;
  lu[8] *= 1 + 1e-8;
  EXPECT_LT(Ratio(Product(true), lu, kIpiv, UnitDiagonal::kL, DType::kFloat32), kThreshold);
}

INSTANTIATE_TEST_SUITE_P(Both, FactorRatioTest,
                         ::testing::Values(&FactorRatio<double>, &ProbedFactorRatio<double>));

// If a single element is wrong, both values depend only on this element.
TEST(ProbedFactorRatioTest, EqualsFactorRatioIfOneElementIsWrong) {
  for (size_t k = 0; k < kLu.size(); ++k) {
    HostMatrix a = Product(true);
    a[k] += 0x1p-40;
    EXPECT_EQ(ProbedFactorRatio(a, kN, kLu, kIpiv, UnitDiagonal::kL, DType::kFloat64),
              FactorRatio(a, kN, kLu, kIpiv, UnitDiagonal::kL, DType::kFloat64));
  }
}

class SolutionRatioTest : public ::testing::Test {
 protected:
  const HostMatrix a_ = {4, 1, 0, 1, 8, 2, 0, 2, 16};
  const HostMatrix x_ = {1, 2, 4};
  const HostMatrix b_ = Multiply(a_, kN, Op::kNone, x_, 1);
  HostMatrix Wrong(size_t k, double by) const {
    HostMatrix x = x_;
    x[k] *= 1 + by;
    return x;
  }
};

TEST_F(SolutionRatioTest, AcceptsTheSolution) {
  EXPECT_EQ(SolveRatio(a_, kN, Op::kNone, x_, b_, 1, DType::kFloat64), 0);
  EXPECT_EQ(ForwardRatio(x_, x_, kN, 1, 0.1, DType::kFloat64), 0);
  EXPECT_EQ(BackwardError(a_, kN, Op::kNone, x_, b_, 1), 0);
  EXPECT_EQ(ErrorOverBound(x_, x_, kN, 1, 1e-16), 0);
}

TEST_F(SolutionRatioTest, RejectsPerturbedSolution) {
  for (size_t k = 0; k < 3; ++k) {
    const HostMatrix x = Wrong(k, 1e-12);
    EXPECT_GT(SolveRatio(a_, kN, Op::kNone, x, b_, 1, DType::kFloat64), kThreshold);
    EXPECT_GT(ForwardRatio(x, x_, kN, 1, 0.2, DType::kFloat64), kThreshold);
    EXPECT_GT(BackwardError(a_, kN, Op::kNone, x, b_, 1), 1e-14);
    EXPECT_GT(ErrorOverBound(x, x_, kN, 1, 1e-13), 1);
  }
}

TEST_F(SolutionRatioTest, RejectsTransposedSystemAndNan) {
  HostMatrix a = a_;
  a[1] = 3;
  EXPECT_GT(
      SolveRatio(a, kN, Op::kTranspose, x_, Multiply(a, kN, Op::kNone, x_, 1), 1, DType::kFloat32),
      kThreshold);
  HostMatrix x = x_;
  x[1] = std::nan("");
  EXPECT_GT(SolveRatio(a_, kN, Op::kNone, x, b_, 1, DType::kFloat32), kThreshold);
  EXPECT_GT(ForwardRatio(x, x_, kN, 1, 0.1, DType::kFloat32), kThreshold);
  EXPECT_GT(BackwardError(a_, kN, Op::kNone, x, b_, 1), 1);
}

TEST_F(SolutionRatioTest, BackwardErrorMatchesItsDefinition) {
  // The residual is (0.5, 0, 0), and |A|_inf = 18, |x|_inf = 4, |b|_inf = 68.
  HostMatrix b = b_;
  b[0] += 0.5;
  EXPECT_DOUBLE_EQ(BackwardError(a_, kN, Op::kNone, x_, b, 1), 0.5 / (18 * 4 + 68));
}

// Covers only properties that real matrices do not have, because the code is the same.
class ComplexRatioTest : public ::testing::Test {
 protected:
  using Complex = std::complex<double>;

  static double Solved(Op op, const ComplexMatrix& x, const ComplexMatrix& b) {
    return SolveRatio(kA, 2, op, x, b, 1, DType::kComplex128);
  }

  // A = [2i 1; -4 5i] = [1 0; 2i 1] [2i 1; 0 3i], and x = [1; i].
  static inline const ComplexMatrix kA = {{0, 2}, -4, 1, {0, 5}};
  static inline const ComplexMatrix kLu = {{0, 2}, {0, 2}, 1, {0, 3}};
  static inline const ComplexMatrix kX = {1, {0, 1}};
};

TEST_F(ComplexRatioTest, RejectsFactorsWithAnErrorInEitherPart) {
  const auto ratio = [](const ComplexMatrix& lu) {
    return std::max(FactorRatio(kA, 2, lu, {1, 2}, UnitDiagonal::kL, DType::kComplex128),
                    ProbedFactorRatio(kA, 2, lu, {1, 2}, UnitDiagonal::kL, DType::kComplex128));
  };
  EXPECT_EQ(ratio(kLu), 0);
  for (size_t k = 0; k < kLu.size(); ++k) {
    for (const Complex error : {Complex{1e-11, 0}, Complex{0, 1e-11}, Complex{0, NAN}}) {
      ComplexMatrix lu = kLu;
      lu[k] += error;
      EXPECT_FALSE(ratio(lu) < kThreshold) << k << " " << error;
    }
  }
}

TEST_F(ComplexRatioTest, AcceptsSolutionsOnlyForTheirOperation) {
  const Op ops[] = {Op::kNone, Op::kTranspose, Op::kConjugateTranspose};
  for (const Op op : ops) {
    const ComplexMatrix b = Multiply(kA, 2, op, kX, 1);
    for (const Op other : ops) EXPECT_EQ(Solved(other, kX, b) < kThreshold, other == op);
    for (const Complex wrong : {Complex{1, 1e-12}, Complex{1 + 1e-12, 0}, Complex{1, NAN}}) {
      const ComplexMatrix x = {wrong, kX[1]};
      EXPECT_GT(Solved(op, x, b), kThreshold);
      EXPECT_GT(ForwardRatio(x, kX, 2, 1, 0.1, DType::kComplex128), kThreshold);
      EXPECT_GT(BackwardError(kA, 2, op, x, b, 1), 1e-14);
      EXPECT_GT(ComponentwiseError(kA, 2, op, x, b, 1), 1e-14);
      EXPECT_GT(ErrorOverBound(x, kX, 2, 1, 1e-13), 1);
    }
  }
  EXPECT_EQ(Multiply(kA, 2, Op::kConjugateTranspose, kX, 1), (ComplexMatrix{{0, -6}, 6}));
}

TEST_F(ComplexRatioTest, NormsUseModuliAndComponentwiseErrorsUseSumsOfParts) {
  const ComplexMatrix a = {{3, 4}, 0, 0, {0, 1}};
  EXPECT_EQ(NormOne(a, 2), 5);
  EXPECT_EQ(NormInf(a, 2), 5);
  EXPECT_DOUBLE_EQ(ExactRcond(a, 2), 0.2);
  // The first component of the residual is 1 + i. It is divided by (3 + 4) * 1 + (4 + 5).
  EXPECT_DOUBLE_EQ(ComponentwiseError(a, 2, Op::kNone, {1, 1}, {{4, 5}, {0, 1}}, 1), 2.0 / 16);
}

TEST(RcondRatioTest, AcceptsEqualAndRejectsDifferent) {
  EXPECT_EQ(RcondRatio(0, 0), 0);
  EXPECT_EQ(RcondRatio(1e-3, 1e-3), 1 - (1 - 1.0));
  EXPECT_LT(RcondRatio(2e-3, 1e-3), kThreshold);
  EXPECT_GT(RcondRatio(1e-3, 1e-5), kThreshold);
  EXPECT_GT(RcondRatio(0, 1e-3), kThreshold);
  EXPECT_GT(RcondRatio(std::nan(""), 1e-3), kThreshold);
}

TEST(ExactRcondTest, IsExactOnKnownMatrices) {
  EXPECT_DOUBLE_EQ(ExactRcond({2, 0, 0, 1e-3}, 2), 5e-4);
  EXPECT_DOUBLE_EQ(ExactRcond({1, 3, 2, 4}, 2), 1 / (6 * 3.5));
  EXPECT_EQ(ExactRcond({1, 2, 2, 4}, 2), 0);
  EXPECT_EQ(ExactRcond({}, 0), 1);
  // 943656 is the published 1-norm condition number of the 5 x 5 Hilbert matrix.
  EXPECT_NEAR(1 / ExactRcond(GalleryNamed("hilbert").make(5), 5), 943656, 1e-3);
}

TEST(GalleryTest, WithConditionHasTheRequestedCondition) {
  const double kappa = 1 / ExactRcond(WithCondition(33, 1e6, 3), 33);
  EXPECT_GT(kappa, 1e6 / 33);
  EXPECT_LT(kappa, 1e6 * 33);
}

}  // namespace
}  // namespace crout::testing::ratios_test
