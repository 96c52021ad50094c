// SPDX-License-Identifier: Apache-2.0

// Tests Crout's own solver with prepared factors against plain substitution on the host.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "kernels/jobs/solve.h"
#include "tests/gpu/solve/prepared_solves.h"
#include "tests/support/ratios.h"

namespace crout::crout_solve_test {
namespace {

using ::crout::testing::GalleryKind;
using ::crout::testing::GalleryNamed;
using ::crout::testing::Multiply;
using ::crout::testing::RandomMatrix;
using ::crout::testing::Rounded;

// Returns the maximum over the columns of |x - truth|_inf / |truth|_inf.
double ForwardError(const HostMatrix& x, const HostMatrix& truth, int64_t n) {
  double worst = 0;
  for (size_t begin = 0; begin < x.size(); begin += n) {
    double difference = 0;
    double size = 0;
    for (size_t i = begin; i < begin + n; ++i) {
      difference = std::max(difference, std::abs(x[i] - truth[i]));
      if (!std::isfinite(x[i])) return INFINITY;
      size = std::max(size, std::abs(truth[i]));
    }
    worst = std::max(worst, difference / size);
  }
  return worst;
}

class GpuCroutSolveTest : public PreparedSolveTest {
 protected:
  absl::StatusOr<Solution> Solve(const Factorization& factor, Op op, const HostMatrix& b,
                                 int64_t nrhs) {
    SolveOptions options;
    options.solver = ours_;
    options.fallback = SolverOf(Gpu(), "trsm");
    options.op = op;
    options.verify = static_cast<bool>(factor.matrix());
    return gpu_->jobs().Solve(factor, b, nrhs, factor.summary.matrix_dtype, Layout::kColumnMajor,
                              options);
  }

  // Solves for `nrhs` random right-hand sides and returns the solver that was used. If it is
  // crout_solve, its errors may be at most kWorse times those of substitution with the same factor.
  std::string Check(const HostMatrix& a, const Factorization& factor, Op op, int64_t nrhs);
};

std::string GpuCroutSolveTest::Check(const HostMatrix& a, const Factorization& factor, Op op,
                                     int64_t nrhs) {
  const FactorSummary& summary = factor.summary;
  const int64_t n = summary.n;
  const DType dtype = summary.factor_dtype;
  SCOPED_TRACE(::testing::Message()
               << "n=" << n << " nrhs=" << nrhs << " op " << static_cast<int>(op) << " "
               << NameOf(dtype) << " condition " << summary.preparation->condition << " transposed "
               << summary.preparation->transposed_condition);
  const HostMatrix truth = RandomMatrix(n, nrhs, 7);
  const HostMatrix b = Rounded(Multiply(a, n, op, truth, nrhs), dtype);
  const auto solved = Solve(factor, op, b, nrhs);
  EXPECT_TRUE(solved.ok()) << solved.status();
  if (!solved.ok()) return "";
  if (solved->summary.solver != ours_->name()) return solved->summary.solver;
  const HostMatrix plain =
      Substituted(*gpu_->jobs().Download(factor), n, summary.unit_diagonal, op, dtype, b);
  const double unit = UnitRoundoff(dtype);
  EXPECT_LE(testing::BackwardError(a, n, op, solved->x, b, nrhs),
            kWorse * std::max(unit, testing::BackwardError(a, n, op, plain, b, nrhs)));
  EXPECT_LE(ForwardError(solved->x, truth, n),
            kWorse * std::max(unit, ForwardError(plain, truth, n)));
  return solved->summary.solver;
}

// Blocks have 256 or 512 rows. Orders are below, at and above these sizes.
TEST_F(GpuCroutSolveTest, SolvesEveryOrderAndNumberOfColumns) {
  for (const int64_t n : {1, 2, 15, 16, 17, 33, 100, 255, 256, 257, 511, 513, 1100}) {
    const HostMatrix exact = GalleryNamed("random").make(n);
    for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
      const HostMatrix a = Rounded(exact, dtype);
      const auto factor = Prepared(a, n, dtype);
      ASSERT_TRUE(factor.ok()) << factor.status();
      for (const Op op : {Op::kNone, Op::kTranspose}) {
        for (const int64_t nrhs : {1, 2, 7, 10, 16, 17, 64, 100}) {
          if (n > 513 && nrhs > 17) continue;  // long double on the host is slow
          EXPECT_EQ(Check(a, *factor, op, nrhs), "crout_solve");
        }
      }
    }
  }
}

// Blocks have 1024 rows, except the last block with four.
TEST_F(GpuCroutSolveTest, SolvesWithLargeBlocksAndManyColumns) {
  constexpr int64_t kOrder = 4100;
  const HostMatrix a = GalleryNamed("random").make(kOrder);
  const auto factor = Prepared(a, kOrder, DType::kFloat64);
  ASSERT_TRUE(factor.ok()) << factor.status();
  for (const Op op : {Op::kNone, Op::kTranspose}) {
    for (const int64_t nrhs : {1, 20}) EXPECT_EQ(Check(a, *factor, op, nrhs), "crout_solve");
  }
}

TEST_F(GpuCroutSolveTest, SolvesTheGalleryAsAccuratelyAsSubstitution) {
  for (const GalleryKind& kind : testing::Gallery()) {
    for (const int64_t n : {33, 300, 600}) {
      for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
        SCOPED_TRACE(kind.name);
        if (kind.singular_at(n) > 0) continue;
        if (dtype == DType::kFloat32 && kind.name.find("f64") != std::string::npos) continue;
        const HostMatrix a = Rounded(kind.make(n), dtype);
        const auto factor = Prepared(a, n, dtype);
        ASSERT_TRUE(factor.ok()) << factor.status();
        if (!factor->summary.preparation) continue;  // rounding made U singular or infinite
        for (const Op op : {Op::kNone, Op::kTranspose}) (void)Check(a, *factor, op, 5);
      }
    }
  }
}

TEST_F(GpuCroutSolveTest, SupportsUnitDiagonalInU) {
  for (const int64_t n : {100, 600}) {
    const HostMatrix a = GalleryNamed("random").make(n);
    const auto factor = Prepared(a, n, DType::kFloat64, "icmpp");
    ASSERT_TRUE(factor.ok()) << factor.status();
    ASSERT_EQ(factor->summary.unit_diagonal, UnitDiagonal::kU);
    for (const Op op : {Op::kNone, Op::kTranspose}) {
      EXPECT_EQ(Check(a, *factor, op, 3), "crout_solve");
    }
  }
}

struct Triangles {
  const char* name;
  double (*entry)(int64_t i, int64_t j, double random);
  bool trusted;  // whether crout_solve is used for this triangle
};

// Each triangle is L with U = I, and U with L = I. The condition numbers of all triangles but the
// first two grow exponentially with the order.
TEST_F(GpuCroutSolveTest, FallsBackForIllConditionedTriangles) {
  constexpr int64_t kN = 300;
  const Triangles kinds[] = {
      {"dominant", [](int64_t i, int64_t j, double r) { return i == j ? 1 : r / kN; }, true},
      {"mild", [](int64_t i, int64_t j, double r) { return i == j ? 1 : r / 8; }, true},
      {"random", [](int64_t i, int64_t j, double r) { return i == j ? 1 : r; }, false},
      {"wilkinson", [](int64_t i, int64_t j, double) { return i == j ? 1.0 : -1.0; }, false},
      {"kahan",
       [](int64_t i, int64_t j, double) {
         return std::pow(std::sin(1.2), static_cast<double>(std::min(i, j))) *
                (i == j ? 1 : -std::cos(1.2));
       },
       false},
  };
  const HostMatrix random = RandomMatrix(kN, kN, 3);
  for (const Triangles& kind : kinds) {
    for (const bool lower : {true, false}) {
      SCOPED_TRACE(::testing::Message() << kind.name << (lower ? " L" : " U"));
      HostMatrix lu(kN * kN, 0.0);
      for (int64_t j = 0; j < kN; ++j) {
        lu[j + j * kN] = 1;
        for (int64_t i = lower ? j : 0; i < (lower ? kN : j + 1); ++i) {
          lu[i + j * kN] = kind.entry(i, j, random[i + j * kN]);
        }
      }
      const UnitDiagonal unit = lower ? UnitDiagonal::kU : UnitDiagonal::kL;
      const Factorization factor = PreparedStored(lu, kN, DType::kFloat64, unit);
      const HostMatrix a = ProductOf(lu, kN, unit);
      for (const Op op : {Op::kNone, Op::kTranspose}) {
        const std::string solver = Check(a, factor, op, 3);
        EXPECT_EQ(solver, kind.trusted ? "crout_solve" : "trsm");
      }
    }
  }
}

// Condition numbers range from 100 to 1e17. The solver must be accurate where it is used.
TEST_F(GpuCroutSolveTest, IsAccurateWhereverItIsUsed) {
  constexpr int64_t kN = 300;
  const HostMatrix random = RandomMatrix(kN, kN, 3);
  for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
    for (const bool lower : {true, false}) {
      for (const double size :
           {0.125, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 1.0}) {
        SCOPED_TRACE(::testing::Message() << size << (lower ? " L" : " U"));
        HostMatrix lu(kN * kN, 0.0);
        for (int64_t j = 0; j < kN; ++j) {
          for (int64_t i = lower ? j : 0; i < (lower ? kN : j + 1); ++i) {
            lu[i + j * kN] = i == j ? 1 : size * random[i + j * kN];
          }
        }
        lu = Rounded(std::move(lu), dtype);
        const UnitDiagonal unit = lower ? UnitDiagonal::kU : UnitDiagonal::kL;
        const Factorization factor = PreparedStored(lu, kN, dtype, unit);
        const HostMatrix a = ProductOf(lu, kN, unit);
        for (const Op op : {Op::kNone, Op::kTranspose}) {
          const std::string solver = Check(a, factor, op, 3);
          if (size <= 0.3) {
            EXPECT_EQ(solver, "crout_solve");
          } else if (size == 1) {
            EXPECT_EQ(solver, "trsm");
          }
        }
      }
    }
  }
}

TEST_F(GpuCroutSolveTest, GivesTheSameBitsTwiceAndAfterEvictionToHostMemory) {
  constexpr int64_t kN = 700;
  const auto factor = Prepared(GalleryNamed("random").make(kN), kN, DType::kFloat64);
  ASSERT_TRUE(factor.ok()) << factor.status();
  for (const int64_t nrhs : {1, 40}) {
    const HostMatrix b = RandomMatrix(kN, nrhs, 5);
    const auto first = Solve(*factor, Op::kNone, b, nrhs);
    const auto second = Solve(*factor, Op::kNone, b, nrhs);
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(first->x, second->x);
    auto host = CopyToHost(gpu_->context(), factor->parts, Host().memory());
    ASSERT_TRUE(host.ok()) << host.status();
    auto back = CopyToDevice(gpu_->context(), *host);
    ASSERT_TRUE(back.ok()) << back.status();
    const Factorization promoted{factor->summary, *std::move(back)};
    const auto third = Solve(promoted, Op::kNone, b, nrhs);
    ASSERT_TRUE(third.ok()) << third.status();
    EXPECT_EQ(first->x, third->x);
  }
}

TEST_F(GpuCroutSolveTest, RequiresAPreparedFactor) {
  constexpr int64_t kN = 40;
  const auto factor = gpu_->jobs().Factor(GalleryNamed("random").make(kN), kN, DType::kFloat64,
                                          Layout::kColumnMajor, OptionsOf(Gpu(), DType::kFloat64));
  ASSERT_TRUE(factor.ok()) << factor.status();
  const auto solved = Solve(*factor, Op::kNone, RandomMatrix(kN, 1, 1), 1);
  EXPECT_EQ(solved.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(solved.status().message()), ::testing::HasSubstr("prepared"));
}

TEST_F(GpuCroutSolveTest, DoesNotPrepareASingularFactor) {
  constexpr int64_t kN = 40;
  const auto factor = Prepared(GalleryNamed("zero_last_column").make(kN), kN, DType::kFloat64);
  ASSERT_TRUE(factor.ok()) << factor.status();
  EXPECT_FALSE(factor->summary.preparation.has_value());
  EXPECT_EQ(factor->prepared().size(), 0u);
}

TEST_F(GpuCroutSolveTest, ComputesErrorBoundsAndRefines) {
  constexpr int64_t kN = 600;
  const HostMatrix a = GalleryNamed("random").make(kN);
  const auto factor = Prepared(a, kN, DType::kFloat64);
  ASSERT_TRUE(factor.ok()) << factor.status();
  const HostMatrix truth = RandomMatrix(kN, 2, 9);
  SolveOptions options;
  options.solver = ours_;
  options.error_bound = true;
  options.max_refinement_steps = 2;
  const auto solved = gpu_->jobs().Solve(*factor, Multiply(a, kN, Op::kNone, truth, 2), 2,
                                         DType::kFloat64, Layout::kColumnMajor, options);
  ASSERT_TRUE(solved.ok()) << solved.status();
  EXPECT_EQ(solved->summary.solver, "crout_solve");
  EXPECT_LT(*solved->summary.backward_error, 1e-15);
  EXPECT_LE(testing::ErrorOverBound(solved->x, truth, kN, 2, *solved->summary.forward_error_bound),
            1);
}

}  // namespace
}  // namespace crout::crout_solve_test
