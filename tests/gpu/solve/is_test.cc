// SPDX-License-Identifier: Apache-2.0

// Tests the iterative triangular solver of the GPU against substitution.
#include <cmath>

#include "gmock/gmock.h"
#include "kernels/jobs/solve.h"
#include "tests/gpu/harness/jobs.h"
#include "tests/support/ratios.h"

namespace crout::is_test {
namespace {

using ::crout::testing::GalleryNamed;
using ::crout::testing::kThreshold;
using ::crout::testing::Rounded;

class GpuIsTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped()) gpu_ = std::make_unique<Bench>(Gpu());
  }

  Factorization Stored(const HostMatrix& lu, int64_t n, DType dtype, UnitDiagonal unit) {
    return StoredFactor(*gpu_, lu, n, dtype, unit);
  }
  HostMatrix Solve(const Factorization& factor, std::string_view solver, Op op, const HostMatrix& b,
                   int64_t nrhs, double tolerance = 0) {
    SolveOptions options;
    options.solver_tolerance = tolerance;
    options.solver = SolverOf(Gpu(), solver);
    options.op = op;
    options.verify = false;
    auto solved = gpu_->jobs().Solve(factor, b, nrhs, factor.summary.factor_dtype,
                                     Layout::kColumnMajor, options);
    EXPECT_TRUE(solved.ok()) << solved.status();
    return solved->x;
  }

  std::unique_ptr<Bench> gpu_;
};

TEST_F(GpuIsTest, PassesLapacksRatio) {
  for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
    for (const char* algorithm : {"getrf", "icmpp"}) {
      for (const int64_t n : {1, 2, 3, 31, 32, 33, 64, 65, 129, 257, 558}) {
        const HostMatrix a = Rounded(GalleryNamed("random").make(n), dtype);
        auto factor = gpu_->jobs().Factor(a, n, dtype, Layout::kColumnMajor,
                                          OptionsOf(Gpu(), dtype, algorithm));
        ASSERT_TRUE(factor.ok()) << factor.status();
        for (const Op op : {Op::kNone, Op::kTranspose}) {
          for (const int64_t nrhs : {1, 10, 64}) {
            SCOPED_TRACE(::testing::Message() << algorithm << " n=" << n << " nrhs=" << nrhs << " "
                                              << NameOf(dtype) << " op " << static_cast<int>(op));
            const HostMatrix b = Rounded(testing::RandomMatrix(n, nrhs, 5), dtype);
            SolveOptions options;
            options.solver = SolverOf(Gpu(), "is");
            options.op = op;
            auto solved =
                gpu_->jobs().Solve(*factor, b, nrhs, dtype, Layout::kColumnMajor, options);
            ASSERT_TRUE(solved.ok()) << solved.status();
            EXPECT_LT(testing::SolveRatio(a, n, op, solved->x, b, nrhs, dtype), kThreshold);
          }
        }
      }
    }
  }
}

// The condition number of a unit triangle with random entries grows as 2^n. With such triangles,
// the published version treats NaN as convergence.
TEST_F(GpuIsTest, SolvesIllConditionedTrianglesLikeSubstitution) {
  for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
    for (const UnitDiagonal unit : {UnitDiagonal::kL, UnitDiagonal::kU}) {
      const int64_t n = dtype == DType::kFloat64 ? 257 : 100;
      const HostMatrix lu = Rounded(testing::RandomMatrix(n, n, 11), dtype);
      const Factorization factor = Stored(lu, n, dtype, unit);
      const HostMatrix b = Rounded(testing::RandomMatrix(n, 3, 12), dtype);
      for (const Op op : {Op::kNone, Op::kTranspose}) {
        const HostMatrix iterated = Solve(factor, "is", op, b, 3);
        const HostMatrix substituted = Solve(factor, "trsm", op, b, 3);
        double scale = 0;
        for (const double v : substituted) scale = std::max(scale, std::abs(v));
        EXPECT_GT(scale, 1e3);  // the triangle is ill-conditioned
        for (size_t e = 0; e < iterated.size(); ++e) {
          EXPECT_EQ(std::isfinite(iterated[e]), std::isfinite(substituted[e])) << e;
        }
      }
    }
  }
}

// L is bidiagonal with off-diagonal elements of 1/8. Each sweep changes the solution about 8 times
// less than the sweep before, until the relative change is below the tolerance.
TEST_F(GpuIsTest, StopsEarlyWithTolerance) {
  constexpr int64_t kN = 60;  // one section
  HostMatrix lu(kN * kN, 0.0);
  for (int64_t i = 0; i < kN; ++i) {
    lu[i + i * kN] = 1;
    if (i > 0) lu[i + (i - 1) * kN] = 0.125;
  }
  const Factorization factor = Stored(lu, kN, DType::kFloat64, UnitDiagonal::kL);
  const HostMatrix b(kN, 1.0);
  const HostMatrix exact = Solve(factor, "is", Op::kNone, b, 1);
  const HostMatrix rough = Solve(factor, "is", Op::kNone, b, 1, 1e-3);
  EXPECT_EQ(exact, Solve(factor, "trsm", Op::kNone, b, 1));
  double worst = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    worst = std::max(worst, std::abs(rough[i] - exact[i]) / std::abs(exact[i]));
  }
  EXPECT_GT(worst, 1e-8);
  EXPECT_LT(worst, 1e-3);
}

TEST_F(GpuIsTest, SolvesBadlyScaledBidiagonalExactly) {
  constexpr int64_t kN = 200;
  HostMatrix lu(kN * kN, 0.0);
  for (int64_t i = 0; i < kN; ++i) {
    lu[i + i * kN] = std::ldexp(1.0, static_cast<int>(i % 60));
    if (i > 0) lu[i + (i - 1) * kN] = -std::ldexp(1.0, static_cast<int>(i % 7));
  }
  const Factorization factor = Stored(lu, kN, DType::kFloat64, UnitDiagonal::kU);
  const HostMatrix b = testing::RandomMatrix(kN, 1, 4);
  EXPECT_EQ(Solve(factor, "is", Op::kNone, b, 1), Solve(factor, "trsm", Op::kNone, b, 1));
}

// The solver returns results that are not finite. If a NaN passed the test of the tolerance, the
// result would have finite elements of an unfinished sweep.
TEST_F(GpuIsTest, DoesNotTreatOverflowAsConvergence) {
  constexpr int64_t kN = 100;
  HostMatrix lu(kN * kN, 0.0);
  for (int64_t i = 0; i < kN; ++i) {
    lu[i + i * kN] = 1;
    for (int64_t j = 0; j < i; ++j) lu[i + j * kN] = -1e12;
  }
  const Factorization factor = Stored(lu, kN, DType::kFloat64, UnitDiagonal::kL);
  const HostMatrix x = Solve(factor, "is", Op::kNone, HostMatrix(kN, 1.0), 1);
  EXPECT_FALSE(std::isfinite(x[kN - 1]));
}

TEST_F(GpuIsTest, GivesTheSameBitsTwice) {
  constexpr int64_t kN = 300;
  const HostMatrix a = GalleryNamed("random").make(kN);
  auto factor = gpu_->jobs().Factor(a, kN, DType::kFloat64, Layout::kColumnMajor,
                                    OptionsOf(Gpu(), DType::kFloat64));
  ASSERT_TRUE(factor.ok());
  const HostMatrix b = testing::RandomMatrix(kN, 4, 5);
  EXPECT_EQ(Solve(*factor, "is", Op::kNone, b, 4), Solve(*factor, "is", Op::kNone, b, 4));
}

}  // namespace
}  // namespace crout::is_test
