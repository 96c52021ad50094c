// SPDX-License-Identifier: Apache-2.0

// Tests every complex method of the GPU without jobs, against the host: LAPACK's ratios over the
// complex gallery, pivots, pivoting rules and warm starts. Some matrices are singular, not finite
// or near the end of the range.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>
#include <string>
#include <thread>

#include "kernels/scalar.h"
#include "tests/gpu/harness/gpu_testing.h"
#include "tests/gpu/harness/jobs.h"
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

class GpuComplexMethodsTest : public GpuTest, public ::testing::WithParamInterface<DType> {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped()) runner_ = std::make_unique<MethodRunner>(Gpu());
  }

  // Returns the device's methods for this type, with or without pivoting.
  std::vector<std::string> Methods(bool pivoting) const {
    std::vector<std::string> names;
    for (const auto& method : Gpu().algorithms()) {
      if (!method->SupportsDense(dtype_)) continue;
      if ((method->traits().pivoting != PivotRule::kNone) == pivoting) {
        names.emplace_back(method->name());
      }
    }
    return names;
  }
  // Returns the methods whose pivoting rule is a parameter.
  std::vector<std::string> MethodsWithRules() const {
    std::vector<std::string> names;
    for (const auto& method : Gpu().algorithms()) {
      if (method->SupportsDense(dtype_) && method->traits().supports_pivoting) {
        names.emplace_back(method->name());
      }
    }
    return names;
  }

  // Uses the probe for large matrices, because the ratio itself costs O(n^3).
  double Ratio(const ComplexMatrix& a, const MethodFactor& factor) const {
    const auto ratio = factor.n > 300 ? ProbedFactorRatio<Complex> : FactorRatio<Complex>;
    return ratio(a, factor.n, factor.lu, factor.ipiv, factor.unit_diagonal, dtype_);
  }

  void Check(const std::string& method, const ComplexGalleryKind& kind, int64_t n,
             const LuParameters& parameters = {}) {
    SCOPED_TRACE(method + " " + kind.name + " n=" + std::to_string(n));
    const ComplexMatrix a = Rounded(kind.make(n), dtype_);
    ASSERT_OK_AND_ASSIGN(const MethodFactor factor,
                         runner_->Factor(method, a, n, dtype_, parameters));
    EXPECT_EQ(factor.info, kind.singular_at(n));
    // With the unit diagonal in U, a singular matrix need not have a factorization.
    if (factor.info > 0 && factor.unit_diagonal == UnitDiagonal::kU) return;
    EXPECT_LT(Ratio(a, factor), kThreshold);
  }

  const DType dtype_ = GetParam();
  std::unique_ptr<MethodRunner> runner_;
};

TEST_P(GpuComplexMethodsTest, FactorsTheGalleryWithPivoting) {
  for (const std::string& method : Methods(true)) {
    for (const ComplexGalleryKind& kind : ComplexGallery()) {
      if (!FitsType(kind.name, dtype_)) continue;
      for (const int64_t n : {1, 2, 3, 5, 10, 31, 32, 33, 129, 257}) Check(method, kind, n);
    }
    for (const int64_t n : {558, 1089}) Check(method, ComplexGalleryNamed("complex_random"), n);
  }
}

TEST_P(GpuComplexMethodsTest, FactorsMatricesThatNeedNoPivotingWithoutIt) {
  for (const std::string& method : Methods(false)) {
    for (const char* name :
         {"helmholtz", "diagonally_dominant", "upper_triangular", "lower_triangular", "graded",
          "near_underflow", "near_overflow", "near_underflow_f64", "near_overflow_f64"}) {
      if (!FitsType(name, dtype_)) continue;
      for (const int64_t n : {1, 2, 3, 5, 31, 32, 33, 129, 257}) {
        Check(method, ComplexGalleryNamed(name), n);
      }
    }
    for (const int64_t n : {558, 1089}) {
      Check(method, ComplexGalleryNamed("diagonally_dominant"), n);
    }
  }
}

TEST_P(GpuComplexMethodsTest, SupportsEveryBlockSize) {
  for (const char* method : {"pcm", "pcmpp"}) {
    for (const int block : {8, 16, 32}) {
      LuParameters parameters;
      parameters.block_size = block;
      for (const int64_t n : {7, 8, 9, 31, 33, 257, 558}) {
        Check(method, ComplexGalleryNamed("diagonally_dominant"), n, parameters);
      }
    }
  }
}

TEST_P(GpuComplexMethodsTest, SupportsSectionsOfEverySize) {
  for (const char* method : {"icm", "icmpp"}) {
    for (const int64_t section : {1, 33, 64, 250, 520, 5000}) {
      LuParameters parameters;
      parameters.section_size = section;
      for (const int64_t n : {100, 558}) {
        Check(method, ComplexGalleryNamed("diagonally_dominant"), n, parameters);
      }
    }
  }
}

// The pivot is a candidate with the largest |Re| + |Im|, not with the largest modulus. The
// interchanges must equal those of LAPACK's getrf on the host.
TEST_P(GpuComplexMethodsTest, ChoosesPivotsLikeLapack) {
  MethodRunner host(Host());
  for (const int64_t n : {2, 33, 150, 257, 558}) {
    // |5| > |3.4 + 3.4 i|, but 5 < 3.4 + 3.4.
    const ComplexMatrix a =
        n == 2 ? ComplexMatrix{5, {3.4, 3.4}, 1, {0, 1}} : Rounded(RandomComplex(n, n, n), dtype_);
    ASSERT_OK_AND_ASSIGN(const MethodFactor oracle, host.Factor("getrf", a, n, dtype_));
    for (const std::string& method : Methods(true)) {
      SCOPED_TRACE(method + " n=" + std::to_string(n));
      ASSERT_OK_AND_ASSIGN(const MethodFactor factor, runner_->Factor(method, a, n, dtype_));
      EXPECT_EQ(factor.ipiv, oracle.ipiv);
    }
    ASSERT_OK_AND_ASSIGN(const DirectSolution direct,
                         runner_->SolveDirectly(a, n, RandomComplex(n, 1, 4), 1, dtype_));
    EXPECT_EQ(direct.ipiv, oracle.ipiv);
  }
}

// Compares element by element for matrices with little growth. The pivots must be equal. Device and
// host add terms in different orders, so other elements may differ by roundoff.
TEST_P(GpuComplexMethodsTest, MatchesTheHostsCroutFactors) {
  MethodRunner host(Host());
  const double most = 1e5 * UnitRoundoff(dtype_);
  for (const int64_t n : {31, 33, 257}) {
    const ComplexMatrix a = Rounded(RandomComplex(n, n, 3 * n), dtype_);
    ASSERT_OK_AND_ASSIGN(const MethodFactor oracle, host.Factor("cmpp", a, n, dtype_));
    for (const char* method : {"pcmpp", "icmpp"}) {
      SCOPED_TRACE(std::string(method) + " n=" + std::to_string(n));
      ASSERT_OK_AND_ASSIGN(const MethodFactor factor, runner_->Factor(method, a, n, dtype_));
      ASSERT_EQ(factor.ipiv, oracle.ipiv);
      double difference = 0;
      for (int64_t e = 0; e < n * n; ++e) {
        difference = std::max(difference,
                              std::abs(factor.lu[e] - oracle.lu[e]) / (1 + std::abs(oracle.lu[e])));
      }
      EXPECT_LT(difference, most);
    }
  }
}

TEST_P(GpuComplexMethodsTest, AppliesPivotRulesToSumOfParts) {
  LuParameters parameters;
  // |Re| + |Im| of 3 + 4i is 7, which is within (6, 8]. Its modulus, 5, and the candidate 9 are
  // outside.
  parameters.pivoting = PivotCriterion{.rule = PivotRule::kInterval, .low = 6, .high = 8};
  const ComplexMatrix interval = {{3, 4}, 9, 0, 7};
  // |Re| + |Im| of 3 + 3i is 6, which is at least 0.8 * 7. Its modulus, 4.2, is less.
  const ComplexMatrix threshold = {{3, 3}, 7, 0, 1};
  for (const std::string& method : MethodsWithRules()) {
    SCOPED_TRACE(method);
    const auto expect = [&](const ComplexMatrix& a, int64_t first) {
      ASSERT_OK_AND_ASSIGN(const MethodFactor factor,
                           runner_->Factor(method, a, 2, dtype_, parameters));
      EXPECT_EQ(factor.ipiv[0], first);
    };
    parameters.pivoting->rule = PivotRule::kInterval;
    expect(interval, 1);
    parameters.pivoting->low = 7.5;
    expect(interval, 2);
    parameters.pivoting->low = 6;
    parameters.pivoting->rule = PivotRule::kThreshold;
    parameters.pivoting->threshold = 0.8;
    expect(threshold, 1);
    parameters.pivoting->threshold = 0.9;
    expect(threshold, 2);
  }
}

TEST_P(GpuComplexMethodsTest, FactorsAcrossSectionsAndBlocksWithEveryPivotRule) {
  for (const int64_t n : {31, 33, 129, 558}) {
    ComplexMatrix a = Rounded(RandomComplex(n, n, 4), dtype_);
    for (int64_t k = 0; k + 1 < n; k += 2) a[k + k * n] = 0;
    for (const PivotRule rule :
         {PivotRule::kPartial, PivotRule::kThreshold, PivotRule::kInterval}) {
      for (const std::string& method : MethodsWithRules()) {
        SCOPED_TRACE(method + " n=" + std::to_string(n) + " rule " +
                     std::to_string(static_cast<int>(rule)));
        LuParameters parameters;
        parameters.pivoting = PivotCriterion{.rule = rule};
        ASSERT_OK_AND_ASSIGN(const MethodFactor factor,
                             runner_->Factor(method, a, n, dtype_, parameters));
        EXPECT_EQ(factor.info, 0);
        // An absolute interval does not bound the growth.
        if (rule == PivotRule::kInterval) continue;
        EXPECT_LT(Ratio(a, factor), kThreshold);
      }
    }
  }
}

TEST_P(GpuComplexMethodsTest, AcceptsPivotsWithOneZeroPart) {
  for (const Complex pivot : {Complex{1, 0}, Complex{0, 1}, Complex{0, 0}}) {
    for (const bool pivoting : {false, true}) {
      for (const std::string& method : Methods(pivoting)) {
        ASSERT_OK_AND_ASSIGN(const MethodFactor factor,
                             runner_->Factor(method, {2, 0, 1, pivot}, 2, dtype_));
        EXPECT_EQ(factor.info, pivot == Complex{} ? 2 : 0) << method << " " << pivot;
      }
    }
  }
}

// The reciprocals of these pivots overflow.
TEST_P(GpuComplexMethodsTest, DoesNotTreatSubnormalPivotsAsZero) {
  const double s = RealOf(dtype_) == DType::kFloat32 ? 0x1p-140 : 0x1p-1060;
  const Complex i{0, 1};
  const ComplexMatrix a = {2, i, 0.5, 0, i * s, 3 * s, 0, 2 * s, 5.0 * i * s};
  for (const char* method : {"pcmpp", "icmpp"}) {
    ASSERT_OK_AND_ASSIGN(const MethodFactor factor, runner_->Factor(method, a, 3, dtype_));
    EXPECT_EQ(factor.info, 0) << method;
    EXPECT_LT(Ratio(a, factor), kThreshold) << method;
  }
  // Row 5 has subnormal numbers. Their quotients by the pivot have the size of other rows'
  // quotients.
  const int64_t n = 100;
  ComplexMatrix b = GalleryMatrix("diagonally_dominant", n, dtype_);
  for (int64_t j = 0; j < n; ++j) b[5 + j * n] *= s;
  b = Rounded(b, dtype_);
  for (const char* method : {"pcm", "icm"}) {
    ASSERT_OK_AND_ASSIGN(const MethodFactor factor, runner_->Factor(method, b, n, dtype_));
    EXPECT_EQ(factor.info, 0) << method;
    EXPECT_LT(Ratio(b, factor), kThreshold) << method;
  }
}

TEST_P(GpuComplexMethodsTest, GivesTheSameBitsTwice) {
  const int64_t n = 700;
  const ComplexMatrix a = GalleryMatrix("diagonally_dominant", n, dtype_);
  for (const bool pivoting : {false, true}) {
    for (const std::string& method : Methods(pivoting)) {
      ASSERT_OK_AND_ASSIGN(const MethodFactor one, runner_->Factor(method, a, n, dtype_));
      ASSERT_OK_AND_ASSIGN(const MethodFactor two, runner_->Factor(method, a, n, dtype_));
      EXPECT_EQ(one.packed, two.packed) << method;
      EXPECT_EQ(one.ipiv, two.ipiv) << method;
    }
  }
}

TEST_P(GpuComplexMethodsTest, WarmStartGivesTheSameBitsAndToleranceSavesSweeps) {
  const int64_t n = 257;
  const ComplexMatrix before = ComplexGalleryNamed("diagonally_dominant").make(n);
  const ComplexMatrix a = Rounded(Perturbed(before, 1e-6, 5), dtype_);
  LuParameters parameters;
  parameters.section_size = 64;
  ASSERT_OK_AND_ASSIGN(const MethodFactor start,
                       runner_->Factor("icm", Rounded(before, dtype_), n, dtype_, parameters));
  ASSERT_OK_AND_ASSIGN(const MethodFactor cold, runner_->Factor("icm", a, n, dtype_, parameters));
  ASSERT_OK_AND_ASSIGN(parameters.start, runner_->Keep(start));
  ASSERT_OK_AND_ASSIGN(const MethodFactor warm, runner_->Factor("icm", a, n, dtype_, parameters));
  EXPECT_TRUE(warm.iterations.warm);
  EXPECT_EQ(warm.packed, cold.packed);
  EXPECT_LT(Ratio(a, warm), kThreshold);
  parameters.tolerance = RealOf(dtype_) == DType::kFloat32 ? 1e-6 : 1e-14;
  ASSERT_OK_AND_ASSIGN(const MethodFactor rough, runner_->Factor("icm", a, n, dtype_, parameters));
  EXPECT_LT(Sum(rough.iterations.sweeps), Sum(cold.iterations.sweeps));
  EXPECT_LT(Ratio(a, rough), kThreshold);
}

TEST_P(GpuComplexMethodsTest, RescalesStartWithUnitLAndKeepsItsPivots) {
  const int64_t n = 257;
  const ComplexMatrix before = RandomComplex(n, n, 6);
  const ComplexMatrix a = Rounded(Perturbed(before, 1e-6, 7), dtype_);
  // The host's getrf has the unit diagonal in L.
  ASSERT_OK_AND_ASSIGN(const MethodFactor start,
                       MethodRunner(Host()).Factor("getrf", Rounded(before, dtype_), n, dtype_));
  LuParameters parameters;
  ASSERT_OK_AND_ASSIGN(parameters.start, runner_->Keep(start));
  ASSERT_OK_AND_ASSIGN(const MethodFactor warm, runner_->Factor("icmpp", a, n, dtype_, parameters));
  EXPECT_EQ(warm.ipiv, start.ipiv);
  EXPECT_EQ(Sum(warm.iterations.pivots), 0);
  EXPECT_LT(Ratio(a, warm), kThreshold);
  // The start's pivots are unsuitable for this matrix.
  const ComplexMatrix other = Rounded(RandomComplex(n, n, 99), dtype_);
  for (const PivotRule rule : {PivotRule::kPartial, PivotRule::kThreshold}) {
    parameters.pivoting = PivotCriterion{.rule = rule};
    ASSERT_OK_AND_ASSIGN(const MethodFactor useless,
                         runner_->Factor("icmpp", other, n, dtype_, parameters));
    EXPECT_GT(Sum(useless.iterations.pivots), 0);
    EXPECT_LT(Ratio(other, useless), kThreshold);
  }
}

TEST_P(GpuComplexMethodsTest, AbortsAtSweepLimit) {
  LuParameters parameters;
  parameters.sweep_limit = 3;
  for (const char* method : {"icm", "icmpp"}) {
    EXPECT_THAT(runner_->Factor(method, RandomComplex(50, 50, 1), 50, dtype_, parameters),
                FailsWith(absl::StatusCode::kAborted, "did not converge"));
  }
}

TEST_P(GpuComplexMethodsTest, NeverConvergesIfAPartIsNotFinite) {
  // One part of l_10 is not finite.
  for (const Complex bad : {Complex{0, kNan}, Complex{kNan, 0}, Complex{0, INFINITY}}) {
    for (const char* method : {"icm", "icmpp"}) {
      EXPECT_THAT(runner_->Factor(method, {1, bad, 0, 1}, 2, dtype_),
                  FailsWith(absl::StatusCode::kInvalidArgument, "not finite"))
          << method << " " << bad;
    }
  }
}

// Runs clusters and cooperative grids on several streams at once. None may wait for blocks that
// cannot be scheduled.
TEST_P(GpuComplexMethodsTest, GivesTheSameBitsConcurrentlyAndAlone) {
  for (const char* method : {"pcmpp", "crout_lu"}) {
    for (const int64_t n : {600, 2100}) {
      const ComplexMatrix a = Rounded(RandomComplex(n, n, 4), dtype_);
      ASSERT_OK_AND_ASSIGN(const MethodFactor alone, runner_->Factor(method, a, n, dtype_));
      std::vector<std::thread> threads;
      std::atomic<int> same = 0;
      for (int t = 0; t < 3; ++t) {
        threads.emplace_back([&] {
          MethodRunner mine(Gpu());
          const auto factor = mine.Factor(method, a, n, dtype_);
          if (factor.ok()) same += factor->packed == alone.packed;
        });
      }
      for (std::thread& thread : threads) thread.join();
      EXPECT_EQ(same, 3) << method << " " << n;
    }
  }
}

// The pipelines handle n = 0 themselves, but the methods must support it too.
TEST_P(GpuComplexMethodsTest, ReturnsZeroInfoForOrderZero) {
  Bench bench(Gpu());
  for (const auto& method : Gpu().algorithms()) {
    if (!method->SupportsDense(dtype_)) continue;
    SCOPED_TRACE(std::string(method->name()));
    ASSERT_OK_AND_ASSIGN(const size_t bytes, method->WorkspaceBytes(dtype_, 0, {}));
    const Buffer workspace = bench.Allocate(bytes);
    bench.context().report().info = 7;
    EXPECT_OK(method->Factor(bench.context(), {nullptr, dtype_, 0, 0, 1}, nullptr,
                             {workspace.data(), workspace.size()}, {}, [] { return false; }));
    EXPECT_EQ(bench.Wait().info, 0);
  }
}

TEST_P(GpuComplexMethodsTest, ReportsProgress) {
  constexpr int64_t kN = 2000;
  Bench bench(Gpu());
  const ComplexMatrix a = GalleryMatrix("diagonally_dominant", kN, dtype_);
  for (const char* method : {"crout_lu", "pcm", "pcmpp", "block_lu"}) {
    SCOPED_TRACE(method);
    ExpectColumnsReported(bench, a, kN, OptionsOf(Gpu(), dtype_, method));
  }
}

TEST_P(GpuComplexMethodsTest, StopsEveryStoppableMethod) {
  const int64_t n = 600;
  const ComplexMatrix a = GalleryMatrix("diagonally_dominant", n, dtype_);
  for (const char* method : {"pcm", "pcmpp"}) {
    int polls = 0;
    EXPECT_THAT(runner_->Factor(method, a, n, dtype_, {}, [&] { return ++polls > 2; }),
                FailsWith(absl::StatusCode::kCancelled, "stopped"))
        << method;
    Check(method, ComplexGalleryNamed("diagonally_dominant"), 257);  // the context is still usable
  }
}

TEST_P(GpuComplexMethodsTest, GaussJordanSolves) {
  const auto check = [&](const std::string& kind, int64_t n, int64_t nrhs) {
    SCOPED_TRACE(kind + " n=" + std::to_string(n) + " nrhs=" + std::to_string(nrhs));
    const ComplexMatrix a = GalleryMatrix(kind, n, dtype_);
    const ComplexMatrix b = Rounded(RandomComplex(n, nrhs, 5), dtype_);
    ASSERT_OK_AND_ASSIGN(const DirectSolution solved,
                         runner_->SolveDirectly(a, n, b, nrhs, dtype_));
    EXPECT_EQ(solved.info, 0);
    EXPECT_LT(SolveRatio(a, n, Op::kNone, solved.x, b, nrhs, dtype_), kThreshold);
  };
  for (const char* kind : {"complex_random", "hermitian", "helmholtz", "diagonally_dominant",
                           "shift", "graded", "near_overflow"}) {
    for (const int64_t n : {1, 2, 3, 31, 32, 33, 257, 558}) check(kind, n, 3);
  }
  check("complex_random", 1089, 65);
  for (const int64_t n : {5, 257}) {
    ComplexMatrix a = GalleryMatrix("complex_random", n, dtype_);
    std::fill_n(a.begin() + 3 * n, n, 0);
    ASSERT_OK_AND_ASSIGN(const DirectSolution singular,
                         runner_->SolveDirectly(a, n, RandomComplex(n, 2, 1), 2, dtype_));
    EXPECT_EQ(singular.info, 4);
  }
  const ComplexMatrix a = GalleryMatrix("complex_random", 700, dtype_);
  const ComplexMatrix b = Rounded(RandomComplex(700, 9, 2), dtype_);
  ASSERT_OK_AND_ASSIGN(const DirectSolution one, runner_->SolveDirectly(a, 700, b, 9, dtype_));
  ASSERT_OK_AND_ASSIGN(const DirectSolution two, runner_->SolveDirectly(a, 700, b, 9, dtype_));
  EXPECT_EQ(one.x, two.x);
}

// Inverted blocks have 256 or 512 rows. Orders are below, at and above these sizes, so that the
// last block has one row, many rows or all rows.
TEST_P(GpuComplexMethodsTest, CroutSolveSolvesWithBothTransposes) {
  for (const int64_t n : {1, 2, 15, 16, 17, 33, 255, 256, 257, 513, 1100}) {
    const ComplexMatrix a = GalleryMatrix("complex_random", n, dtype_);
    ASSERT_OK_AND_ASSIGN(const MethodFactor factor, runner_->Factor("getrf", a, n, dtype_));
    for (const Op op : {Op::kNone, Op::kTranspose, Op::kConjugateTranspose}) {
      for (const int64_t nrhs : {1, 3, 4, 9, 33}) {
        SCOPED_TRACE("n=" + std::to_string(n) + " nrhs=" + std::to_string(nrhs) + " op " +
                     std::to_string(static_cast<int>(op)));
        const ComplexMatrix b = Rounded(RandomComplex(n, nrhs, 5), dtype_);
        ASSERT_OK_AND_ASSIGN(const ComplexMatrix x,
                             runner_->Solve("crout_solve", factor, op, b, nrhs));
        EXPECT_LT(SolveRatio(a, n, op, x, b, nrhs, dtype_), kThreshold);
      }
    }
  }
}

// Uses factors with the unit diagonal in L and in U. Some inverted blocks need a correction.
TEST_P(GpuComplexMethodsTest, CroutSolveSupportsFactorsOfEveryMethod) {
  for (const char* method : {"getrf", "pcmpp", "icmpp"}) {
    for (const char* kind : {"diagonally_dominant", "hermitian", "helmholtz", "shift"}) {
      const int64_t n = 600;
      const ComplexMatrix a = GalleryMatrix(kind, n, dtype_);
      ASSERT_OK_AND_ASSIGN(const MethodFactor factor, runner_->Factor(method, a, n, dtype_));
      for (const Op op : {Op::kNone, Op::kTranspose, Op::kConjugateTranspose}) {
        SCOPED_TRACE(std::string(method) + " " + kind + " op " +
                     std::to_string(static_cast<int>(op)));
        const ComplexMatrix b = Rounded(RandomComplex(n, 5, 6), dtype_);
        ASSERT_OK_AND_ASSIGN(const ComplexMatrix x,
                             runner_->Solve("crout_solve", factor, op, b, 5));
        EXPECT_LT(SolveRatio(a, n, op, x, b, 5, dtype_), kThreshold);
      }
    }
  }
}

// The panels have more rows than the blocks of one cluster hold.
TEST_P(GpuComplexMethodsTest, FactorsTallPanels) {
  const int64_t n = 8500;
  const ComplexMatrix a = Rounded(RandomComplex(n, n, 3), dtype_);
  ASSERT_OK_AND_ASSIGN(const MethodFactor factor, runner_->Factor("pcmpp", a, n, dtype_));
  EXPECT_LT(Ratio(a, factor), kThreshold);
}

INSTANTIATE_TEST_SUITE_P(Types, GpuComplexMethodsTest,
                         ::testing::Values(DType::kComplex64, DType::kComplex128),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

}  // namespace
}  // namespace crout::testing::complex_methods_test
