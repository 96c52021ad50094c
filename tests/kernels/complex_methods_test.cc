// SPDX-License-Identifier: Apache-2.0

// Tests complex methods of the host beyond factoring and solving: values computed by hand, stops,
// warm starts, tolerances, refused input, non-finite values, predictions.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>

#include "kernels/host/device/host_device.h"
#include "kernels/util/sanitizers.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/method_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::complex_methods_test {
namespace {

using Complex = std::complex<double>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

int64_t Sum(const std::vector<int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

class ComplexMethodsTest : public ::testing::TestWithParam<DType> {
 protected:
  double Ratio(const ComplexMatrix& a, const MethodFactor& factor) const {
    return FactorRatio(a, factor.n, factor.lu, factor.ipiv, factor.unit_diagonal, GetParam());
  }

  const DType dtype_ = GetParam();
  const std::unique_ptr<Device> device_ = host::MakeDevice({});
  MethodRunner runner_{*device_};
};

TEST_P(ComplexMethodsTest, MatchesHandComputedFactorsAndSolutions) {
  const Complex i{0, 1};
  // [2i 1; -4 5i] = [1 0; 2i 1] [2i 1; 0 3i] = [2i 0; -4 3i] [1 -i/2; 0 1].
  const ComplexMatrix a = {2.0 * i, -4, 1, 5.0 * i};
  for (const char* method : {"block_lu", "cm", "icm"}) {
    ASSERT_OK_AND_ASSIGN(const MethodFactor factor, runner_.Factor(method, a, 2, dtype_));
    const ComplexMatrix expected = factor.unit_diagonal == UnitDiagonal::kL
                                       ? ComplexMatrix{2.0 * i, 2.0 * i, 1, 3.0 * i}
                                       : ComplexMatrix{2.0 * i, -4, -0.5 * i, 3.0 * i};
    EXPECT_EQ(factor.lu, expected) << method;
  }
  // getrf exchanges the rows. The solution of the following systems is x = [1; i].
  ASSERT_OK_AND_ASSIGN(MethodFactor factor, runner_.Factor("getrf", a, 2, dtype_));
  EXPECT_EQ(factor.ipiv, (std::vector<int64_t>{2, 2}));
  for (const char* solver : {"getrs", "trsm", "ss", "is"}) {
    const auto expect = [&](Op op, const ComplexMatrix& b) {
      ASSERT_OK_AND_ASSIGN(const ComplexMatrix x, runner_.Solve(solver, factor, op, b, 1));
      EXPECT_NEAR(std::abs(x[0] - 1.0) + std::abs(x[1] - i), 0, 8 * UnitRoundoff(dtype_)) << solver;
    };
    expect(Op::kNone, {3.0 * i, -9});
    expect(Op::kTranspose, {-2.0 * i, -4});
    expect(Op::kConjugateTranspose, {-6.0 * i, 6});
  }
}

TEST_P(ComplexMethodsTest, EveryStoppableMethodStopsBetweenPanels) {
  const int64_t n = 600;
  const ComplexMatrix a = GalleryMatrix("diagonally_dominant", n, dtype_);
  for (const char* method : {"gem", "cmpp", "cm", "icm", "icmpp", "block_lu"}) {
    int polls = 0;
    EXPECT_THAT(runner_.Factor(method, a, n, dtype_, {}, [&] { return ++polls > 2; }),
                FailsWith(absl::StatusCode::kCancelled, "stopped"))
        << method;
  }
}

TEST_P(ComplexMethodsTest, FactorsAcrossBlocksWithEveryPivotRule) {
  for (const int64_t n : {31, 33, 129, 257}) {
    ComplexMatrix a = Rounded(RandomComplex(n, n, 4), dtype_);
    for (int64_t k = 0; k + 1 < n; k += 2) a[k + k * n] = 0;
    for (const PivotRule rule : {PivotRule::kPartial, PivotRule::kThreshold}) {
      for (const char* method : {"cmpp", "icmpp"}) {
        SCOPED_TRACE(std::string(method) + " " + std::to_string(n));
        LuParameters parameters;
        parameters.pivoting = PivotCriterion{.rule = rule};
        ASSERT_OK_AND_ASSIGN(const MethodFactor factor,
                             runner_.Factor(method, a, n, dtype_, parameters));
        EXPECT_LT(Ratio(a, factor), kThreshold);
      }
    }
  }
}

TEST_P(ComplexMethodsTest, StopsAtZeroPivotWithoutPivoting) {
  for (const char* method : {"cm", "icm", "block_lu"}) {
    for (const int64_t k : {0, 1, 31, 64, 256, 270}) {
      ComplexMatrix a = GalleryMatrix("lower_triangular", 271, dtype_);
      a[k + k * 271] = 0;
      ASSERT_OK_AND_ASSIGN(const MethodFactor factor, runner_.Factor(method, a, 271, dtype_));
      EXPECT_EQ(factor.info, k + 1) << method;
    }
  }
}

// Subnormal pivots, whose reciprocals overflow. BLAS multiplies by reciprocals.
TEST_P(ComplexMethodsTest, DoesNotTreatSubnormalPivotsAsZero) {
  const double s = RealOf(dtype_) == DType::kFloat32 ? 0x1p-140 : 0x1p-1060;
  const Complex i{0, 1};
  const ComplexMatrix a = {2, i, 0.5, 0, i * s, 3 * s, 0, 2 * s, 5.0 * i * s};
  for (const char* method : {"gem", "cmpp", "icmpp"}) {
    ASSERT_OK_AND_ASSIGN(const MethodFactor factor, runner_.Factor(method, a, 3, dtype_));
    EXPECT_EQ(factor.info, 0) << method;
    EXPECT_LT(Ratio(a, factor), kThreshold) << method;
  }
  // A row of subnormal numbers, whose quotients by the pivot are normal.
  const int64_t n = 100;
  ComplexMatrix b = GalleryMatrix("diagonally_dominant", n, dtype_);
  for (int64_t j = 0; j < n; ++j) b[5 + j * n] *= s;
  b = Rounded(b, dtype_);
  for (const char* method : {"cm", "icm"}) {
    ASSERT_OK_AND_ASSIGN(const MethodFactor factor, runner_.Factor(method, b, n, dtype_));
    EXPECT_EQ(factor.info, 0) << method;
    EXPECT_LT(Ratio(b, factor), kThreshold) << method;
  }
}

TEST_P(ComplexMethodsTest, BlockLuRefusesPivotIfBothPartsUnderflow) {
  const double smallest = RealOf(dtype_) == DType::kFloat32 ? 0x1p-126 : 0x1p-1022;
  for (const int64_t k : {0, 70, 299}) {
    ComplexMatrix a = GalleryMatrix("lower_triangular", 300, dtype_);
    a[k + k * 300] = {smallest / 4, -smallest / 4};
    ASSERT_OK_AND_ASSIGN(const MethodFactor refused, runner_.Factor("block_lu", a, 300, dtype_));
    EXPECT_EQ(refused.info, k + 1);
    a[k + k * 300] = {smallest / 2, -smallest / 2};
    ASSERT_OK_AND_ASSIGN(const MethodFactor taken, runner_.Factor("block_lu", a, 300, dtype_));
    EXPECT_EQ(taken.info, 0);
  }
}

TEST_P(ComplexMethodsTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  if (kSanitized) GTEST_SKIP() << "order 1030 is for optimised builds";
  const int64_t n = 1030;  // uses all cores
  const ComplexMatrix a = GalleryMatrix("diagonally_dominant", n, dtype_);
  ComplexMatrix alone;
  for (const int threads : {1, 2, 3}) {
    const std::unique_ptr<Device> device = host::MakeDevice({.threads = threads});
    ASSERT_OK_AND_ASSIGN(const MethodFactor factor,
                         MethodRunner(*device).Factor("block_lu", a, n, dtype_));
    if (threads == 1) alone = factor.lu;
    EXPECT_EQ(factor.lu, alone) << threads;
  }
}

TEST_P(ComplexMethodsTest, WarmStartGivesTheSameBits) {
  const int64_t n = 129;
  const ComplexMatrix before = ComplexGalleryNamed("diagonally_dominant").make(n);
  const ComplexMatrix a = Rounded(Perturbed(before, 1e-3, 5), dtype_);
  LuParameters parameters;
  parameters.section_size = 50;
  parameters.pivoting = PivotCriterion{.rule = PivotRule::kThreshold};
  ASSERT_OK_AND_ASSIGN(MethodFactor start,
                       runner_.Factor("icmpp", Rounded(before, dtype_), n, dtype_, parameters));
  ASSERT_OK_AND_ASSIGN(const MethodFactor cold, runner_.Factor("icmpp", a, n, dtype_, parameters));
  ASSERT_OK_AND_ASSIGN(parameters.start, runner_.Keep(start));
  ASSERT_OK_AND_ASSIGN(const MethodFactor warm, runner_.Factor("icmpp", a, n, dtype_, parameters));
  EXPECT_TRUE(warm.iterations.warm);
  EXPECT_EQ(warm.packed, cold.packed);
  EXPECT_EQ(warm.ipiv, cold.ipiv);
}

TEST_P(ComplexMethodsTest, RescalesStartWithUnitLAndSavesSweepsWithTolerance) {
  const int64_t n = 129;
  const ComplexMatrix before = RandomComplex(n, n, 6);
  const ComplexMatrix a = Rounded(Perturbed(before, 1e-6, 7), dtype_);
  ASSERT_OK_AND_ASSIGN(MethodFactor start,
                       runner_.Factor("getrf", Rounded(before, dtype_), n, dtype_));
  LuParameters parameters;
  parameters.section_size = 40;
  ASSERT_OK_AND_ASSIGN(const MethodFactor cold, runner_.Factor("icmpp", a, n, dtype_, parameters));
  ASSERT_OK_AND_ASSIGN(parameters.start, runner_.Keep(start));
  ASSERT_OK_AND_ASSIGN(const MethodFactor exact, runner_.Factor("icmpp", a, n, dtype_, parameters));
  EXPECT_EQ(exact.ipiv, start.ipiv);  // icmpp accepts getrf's row order
  EXPECT_LT(Ratio(a, exact), kThreshold);
  parameters.tolerance = 1e-2;
  ASSERT_OK_AND_ASSIGN(const MethodFactor rough, runner_.Factor("icmpp", a, n, dtype_, parameters));
  EXPECT_LT(Sum(rough.iterations.sweeps), Sum(cold.iterations.sweeps) / 4);
}

TEST_P(ComplexMethodsTest, AbortsAtSweepLimit) {
  LuParameters parameters;
  parameters.sweep_limit = 3;
  EXPECT_THAT(runner_.Factor("icm", RandomComplex(50, 50, 1), 50, dtype_, parameters),
              FailsWith(absl::StatusCode::kAborted, "within 3 sweeps"));
}

TEST_P(ComplexMethodsTest, NeverConvergesIfAPartIsNotFinite) {
  // Only one part of l_10 is not finite.
  for (const Complex bad : {Complex{0, kNan}, Complex{kNan, 0}, Complex{0, INFINITY}}) {
    for (const char* method : {"icm", "icmpp"}) {
      EXPECT_THAT(runner_.Factor(method, {1, bad, 0, 1}, 2, dtype_),
                  FailsWith(absl::StatusCode::kInvalidArgument, "not finite"))
          << method << " " << bad;
    }
  }
}

TEST_P(ComplexMethodsTest, SolversReturnNanInEitherPart) {
  for (const Complex bad : {Complex{0, kNan}, Complex{kNan, 0}}) {
    MethodFactor factor;
    factor.n = 3;
    factor.dtype = dtype_;
    factor.ipiv = {1, 2, 3};
    // l_20 = bad.
    factor.packed = Packed(ComplexMatrix{1, 0.5, bad, 0, 1, 0.5, 0, 0, 1}, 3, 3, dtype_);
    for (const char* solver : {"getrs", "trsm", "ss", "is"}) {
      ASSERT_OK_AND_ASSIGN(const ComplexMatrix x,
                           runner_.Solve(solver, factor, Op::kNone, {1, 1, 1}, 1));
      EXPECT_TRUE(std::isnan(x[2].real()) || std::isnan(x[2].imag())) << solver;
    }
  }
}

// A complex operation costs four real ones.
TEST_P(ComplexMethodsTest, PredictedTimesGrowWithTheWork) {
  const DType real = RealOf(dtype_);
  const auto expect = [](std::string_view name, double complex, double real) {
    EXPECT_GT(complex, 2.5 * real) << name;
    EXPECT_LT(complex, 6 * real) << name;
  };
  for (const auto& method : device_->algorithms()) {
    expect(method->name(), method->PredictSeconds(dtype_, 8000),
           method->PredictSeconds(real, 8000));
    for (const int64_t n : {0, 1, 10, 100}) EXPECT_GT(method->PredictSeconds(dtype_, n), 0);
  }
  for (const auto& solver : device_->solvers()) {
    if (!solver->traits().operands.contains(OperandKind::kDense)) continue;
    expect(solver->name(), solver->PredictSeconds(dtype_, 8000, 1000),
           solver->PredictSeconds(real, 8000, 1000));
  }
  for (const auto& solver : device_->direct_solvers()) {
    expect(solver->name(), solver->PredictSeconds(dtype_, 8000, 1000),
           solver->PredictSeconds(real, 8000, 1000));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ComplexMethodsTest,
                         ::testing::Values(DType::kComplex64, DType::kComplex128),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

// getrf works in panels from order 4096 on.
TEST(ComplexGetrfPanelsTest, FactorsReportsZeroPivotAndStops) {
  if (kSanitized) GTEST_SKIP() << "order 4096 is for optimised builds";
  constexpr int64_t kN = 4100;
  const std::unique_ptr<Device> device = host::MakeDevice({});
  MethodRunner runner(*device);
  ComplexMatrix a = Rounded(RandomComplex(kN, kN, 1), DType::kComplex64);
  int polls = 0;
  EXPECT_THAT(runner.Factor("getrf", a, kN, DType::kComplex64, {}, [&] { return ++polls > 1; }),
              FailsWith(absl::StatusCode::kCancelled, "stopped"));
  std::fill_n(a.begin() + 3000 * kN, kN, 0);
  ASSERT_OK_AND_ASSIGN(const MethodFactor factor, runner.Factor("getrf", a, kN, DType::kComplex64));
  EXPECT_EQ(factor.info, 3001);
  EXPECT_LT(ProbedFactorRatio(a, kN, factor.lu, factor.ipiv, UnitDiagonal::kL, DType::kComplex64),
            kThreshold);
}

}  // namespace
}  // namespace crout::testing::complex_methods_test
