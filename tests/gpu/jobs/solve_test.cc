// SPDX-License-Identifier: Apache-2.0

// Tests solves on the GPU with LAPACK's ratios.
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "kernels/jobs/solve.h"
#include "tests/gpu/harness/jobs.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/runners/solve_cases.h"

namespace crout::solve_test {
namespace {

using ::crout::testing::ComplexMatrix;
using ::crout::testing::GalleryNamed;
using ::crout::testing::kThreshold;
using ::crout::testing::Multiply;
using ::crout::testing::RandomMatrix;
using ::crout::testing::Rounded;

class GpuSolveTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped()) gpu_ = std::make_unique<Bench>(Gpu());
  }

  std::unique_ptr<Bench> gpu_;
};

// Solves op(A) X = B for a known X. Checks the ratio and the reported backward error.
void CheckSolve(Bench& gpu, const HostMatrix& a, const Factorization& factor, const char* solver,
                Op op, int64_t nrhs, Layout layout) {
  SCOPED_TRACE(::testing::Message() << solver << " op " << static_cast<int>(op) << " nrhs " << nrhs
                                    << " layout " << static_cast<int>(layout));
  const int64_t n = factor.summary.n;
  const DType dtype = factor.summary.matrix_dtype;
  const HostMatrix b = Rounded(Multiply(a, n, op, RandomMatrix(n, nrhs, 99), nrhs), dtype);
  SolveOptions options;
  options.solver = SolverOf(gpu.device(), solver);
  options.op = op;
  auto solved = gpu.jobs().Solve(factor, b, nrhs, dtype, layout, options);
  ASSERT_TRUE(solved.ok()) << solved.status();
  EXPECT_LT(testing::SolveRatio(a, n, op, solved->x, b, nrhs, factor.summary.factor_dtype),
            kThreshold);
  const double expected = testing::BackwardError(a, n, op, solved->x, b, nrhs);
  // The expected residual is in long double. The device's float64 residual has n + 1 roundoffs.
  EXPECT_NEAR(*solved->summary.backward_error, expected, 0x1p-53 * static_cast<double>(n + 1));
}

TEST_F(GpuSolveTest, SolversPassLapacksRatio) {
  for (const char* kind : {"random", "diagonally_dominant", "graded", "shift", "near_underflow"}) {
    for (const int64_t n : {1, 2, 3, 10, 33, 129, 300}) {
      for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
        SCOPED_TRACE(::testing::Message() << kind << " n=" << n << " " << NameOf(dtype));
        const HostMatrix a = Rounded(GalleryNamed(kind).make(n), dtype);
        auto factor = gpu_->jobs().Factor(a, n, dtype, Layout::kRowMajor, OptionsOf(Gpu(), dtype));
        ASSERT_TRUE(factor.ok()) << factor.status();
        for (const Op op : {Op::kNone, Op::kTranspose}) {
          for (const int64_t nrhs : {1, 2, 15}) {
            CheckSolve(*gpu_, a, *factor, "getrs", op, nrhs, Layout::kRowMajor);
            CheckSolve(*gpu_, a, *factor, "trsm", op, nrhs, Layout::kColumnMajor);
          }
        }
      }
    }
  }
}

// Solves with complex factors that have the unit diagonal in either triangle. Uses every solver
// that needs no preparation.
class GpuComplexSolveTest : public GpuTest, public ::testing::WithParamInterface<DType> {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped()) runner_.emplace(Gpu());
  }

  void Check(const ComplexMatrix& a, const Factorization& factor, int64_t nrhs) {
    const int64_t n = factor.summary.n;
    for (const auto& solver : Gpu().solvers()) {
      if (!solver->SupportsDense(GetParam()) || solver->needs_preparation()) continue;
      if (!solver->Supports(factor.summary.unit_diagonal)) continue;
      for (const Op op : {Op::kNone, Op::kTranspose, Op::kConjugateTranspose}) {
        SCOPED_TRACE(::testing::Message()
                     << solver->name() << " op " << static_cast<int>(op) << " nrhs " << nrhs);
        const ComplexMatrix x = testing::RandomComplex(n, nrhs, 99);
        const ComplexMatrix b = Rounded(Multiply(a, n, op, x, nrhs), GetParam());
        testing::SolveRequest request;
        request.solver = std::string(solver->name());
        request.dtype = GetParam();
        request.op = op;
        request.layout = nrhs > 1 ? Layout::kRowMajor : Layout::kColumnMajor;
        const auto solution = runner_->SolveComplex(factor, b, nrhs, request);
        ASSERT_TRUE(solution.ok()) << solution.status();
        EXPECT_LT(testing::SolveRatio(a, n, op, solution->x, b, nrhs, GetParam()), kThreshold);
        const double expected = testing::BackwardError(a, n, op, solution->x, b, nrhs);
        EXPECT_NEAR(*solution->summary.backward_error, expected,
                    0x1p-51 * static_cast<double>(n + 1));
      }
    }
  }

  std::optional<testing::JobRunner> runner_;
};

TEST_P(GpuComplexSolveTest, SolversPassLapacksRatio) {
  for (const char* kind : {"complex_random", "hermitian", "helmholtz", "graded", "shift"}) {
    for (const int64_t n : {1, 2, 3, 33, 65, 129, 300}) {
      for (const char* algorithm : {"getrf", "icmpp"}) {
        SCOPED_TRACE(::testing::Message() << kind << " n=" << n << " " << algorithm);
        const ComplexMatrix a = testing::GalleryMatrix(kind, n, GetParam());
        testing::FactorRequest request;
        request.algorithm = algorithm;
        request.matrix_dtype = request.factor_dtype = GetParam();
        const auto factor = runner_->FactorComplex(a, n, request);
        ASSERT_TRUE(factor.ok()) << factor.status();
        for (const int64_t nrhs : {1, 15}) Check(a, *factor, nrhs);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, GpuComplexSolveTest,
                         ::testing::Values(DType::kComplex64, DType::kComplex128),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

TEST_F(GpuSolveTest, RefinesToThePrecisionOfTheMatrix) {
  constexpr int64_t kN = 300;
  const HostMatrix a = GalleryNamed("diagonally_dominant").make(kN);
  auto factor = gpu_->jobs().Factor(a, kN, DType::kFloat64, Layout::kColumnMajor,
                                    OptionsOf(Gpu(), DType::kFloat32));
  ASSERT_TRUE(factor.ok()) << factor.status();
  const HostMatrix b = RandomMatrix(kN, 2, 1);
  SolveOptions options;
  options.solver = SolverOf(Gpu(), "getrs");
  auto plain = gpu_->jobs().Solve(*factor, b, 2, DType::kFloat64, Layout::kColumnMajor, options);
  options.max_refinement_steps = 5;
  auto refined = gpu_->jobs().Solve(*factor, b, 2, DType::kFloat64, Layout::kColumnMajor, options);
  ASSERT_TRUE(plain.ok() && refined.ok());
  EXPECT_GT(*plain->summary.backward_error, 1e-10);
  EXPECT_LT(*refined->summary.backward_error, 1e-15);
  EXPECT_GT(refined->summary.refinement_steps, 0);
}

TEST_F(GpuSolveTest, BoundsTheTrueError) {
  constexpr int64_t kN = 129;
  for (const Op op : {Op::kNone, Op::kTranspose}) {
    const HostMatrix a = GalleryNamed("condition_sqrt").make(kN);
    const HostMatrix x = RandomMatrix(kN, 2, 3);
    auto factor = gpu_->jobs().Factor(a, kN, DType::kFloat64, Layout::kColumnMajor,
                                      OptionsOf(Gpu(), DType::kFloat64));
    ASSERT_TRUE(factor.ok());
    SolveOptions options;
    options.solver = SolverOf(Gpu(), "trsm");
    options.op = op;
    options.error_bound = true;
    auto solved = gpu_->jobs().Solve(*factor, Multiply(a, kN, op, x, 2), 2, DType::kFloat64,
                                     Layout::kColumnMajor, options);
    ASSERT_TRUE(solved.ok()) << solved.status();
    const double bound = *solved->summary.forward_error_bound;
    EXPECT_LE(testing::ErrorOverBound(solved->x, x, kN, 2, bound), 1);
    EXPECT_LT(bound, 1e-4);
  }
}

TEST_F(GpuSolveTest, RefusesASingularFactorAndABadRightHandSide) {
  constexpr int64_t kN = 33;
  SolveOptions options;
  options.solver = SolverOf(Gpu(), "getrs");
  auto singular =
      gpu_->jobs().Factor(GalleryNamed("zero_last_column").make(kN), kN, DType::kFloat64,
                          Layout::kColumnMajor, OptionsOf(Gpu(), DType::kFloat64));
  ASSERT_TRUE(singular.ok());
  const HostMatrix b = RandomMatrix(kN, 1, 1);
  auto refused =
      gpu_->jobs().Solve(*singular, b, 1, DType::kFloat64, Layout::kColumnMajor, options);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()), ::testing::HasSubstr("33"));

  auto factor = gpu_->jobs().Factor(GalleryNamed("random").make(kN), kN, DType::kFloat64,
                                    Layout::kColumnMajor, OptionsOf(Gpu(), DType::kFloat64));
  ASSERT_TRUE(factor.ok());
  HostMatrix bad = b;
  bad[7] = std::numeric_limits<double>::quiet_NaN();
  refused = gpu_->jobs().Solve(*factor, bad, 1, DType::kFloat64, Layout::kColumnMajor, options);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(GpuSolveTest, SolutionsScaleWithRightHandSides) {
  testing::ExpectSolutionsScaleWithRightHandSides(Gpu());
}

TEST_F(GpuSolveTest, CorrectsSolutionByComponentwiseRefinement) {
  testing::ExpectComponentwiseRefinementCorrectsSolution(Gpu());
}

TEST_F(GpuSolveTest, MeasuresErrorsAtTheEndOfTheRange) {
  testing::ExpectErrorsAtTheEndOfTheRange(Gpu());
}

}  // namespace
}  // namespace crout::solve_test
