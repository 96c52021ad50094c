// SPDX-License-Identifier: Apache-2.0

// Tests jobs with a complex matrix, complex right-hand sides or both, on any device
// (device_under_test.h).
#include <cmath>
#include <complex>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/algorithm_registry.h"
#include "kernels/jobs/direct_solve.h"
#include "kernels/jobs/schur.h"
#include "kernels/util/status_macros.h"
#include "tests/support/matrices/gallery.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/device_under_test.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::complex_jobs_test {
namespace {

using Complex = std::complex<double>;

class ComplexJobsTest : public OnDeviceUnderTest<JobRunner> {
 protected:
  absl::StatusOr<Factorization> Factor(const ComplexMatrix& a, int64_t n,
                                       const FactorRequest& request) {
    return runner_->FactorComplex(a, n, request);
  }
  absl::StatusOr<ComplexSolution> Solve(const Factorization& factor, const ComplexMatrix& b,
                                        int64_t nrhs, const SolveRequest& request) {
    return runner_->SolveComplex(factor, b, nrhs, request);
  }
};

FactorRequest Request(DType matrix, DType factor, Layout layout = Layout::kColumnMajor) {
  FactorRequest request;
  request.matrix_dtype = matrix;
  request.factor_dtype = factor;
  request.layout = layout;
  return request;
}

// Types of the matrix, the factor and the right-hand side.
using Types = std::tuple<DType, DType, DType>;

class ComplexTypesTest : public ComplexJobsTest, public ::testing::WithParamInterface<Types> {};

TEST_P(ComplexTypesTest, SolvesToFactorAccuracyInEveryOperation) {
  const auto [matrix, factor_type, rhs] = GetParam();
  constexpr int64_t kN = 70;
  constexpr int64_t kNrhs = 3;
  std::map<Op, ComplexMatrix> by_columns;
  for (const Layout layout : {Layout::kColumnMajor, Layout::kRowMajor}) {
    ComplexMatrix a = RandomComplex(kN, kN, 1);
    if (!IsComplex(matrix)) a = AsComplex(RandomMatrix(kN, kN, 1));
    a = Rounded(a, matrix);
    ComplexMatrix b = RandomComplex(kN, kNrhs, 2);
    if (!IsComplex(rhs)) b = AsComplex(RandomMatrix(kN, kNrhs, 2));
    b = Rounded(b, rhs);
    ASSERT_OK_AND_ASSIGN(const Factorization factor,
                         Factor(a, kN, Request(matrix, factor_type, layout)));
    EXPECT_EQ(factor.summary.info, 0);
    EXPECT_NEAR(factor.summary.norm_one, NormOne(a, kN), 1e-12 * NormOne(a, kN));
    EXPECT_NEAR(factor.summary.norm_inf, NormInf(a, kN), 1e-12 * NormInf(a, kN));
    EXPECT_LT(*factor.summary.quality, 30);
    for (const Op op : kOps) {
      SolveRequest request;
      request.dtype = rhs;
      request.layout = layout;
      request.op = op;
      request.componentwise_error = true;
      ASSERT_OK_AND_ASSIGN(const ComplexSolution solution, Solve(factor, b, kNrhs, request));
      // X has the same bits in both layouts.
      EXPECT_EQ(by_columns.try_emplace(op, solution.x).first->second, solution.x);
      const bool complex = IsComplex(matrix) || IsComplex(rhs);
      EXPECT_EQ(solution.dtype, complex ? ComplexOf(rhs) : rhs);
      const DType coarser =
          UnitRoundoff(factor_type) > UnitRoundoff(rhs) ? factor_type : solution.dtype;
      EXPECT_LT(SolveRatio(a, kN, op, solution.x, b, kNrhs, coarser), 30);
      // The reported errors are those of the delivered X. A real factor solves for the real and
      // imaginary parts of B as separate columns. Their reported error is at least half the error
      // of the complex column.
      const double error = BackwardError(a, kN, op, solution.x, b, kNrhs);
      const double componentwise = ComponentwiseError(a, kN, op, solution.x, b, kNrhs);
      if (IsComplex(matrix) || !IsComplex(rhs)) {
        EXPECT_NEAR(*solution.summary.backward_error, error, 1e-15 + 1e-6 * error);
        EXPECT_NEAR(*solution.summary.componentwise_error, componentwise,
                    1e-15 + 1e-6 * componentwise);
      } else {
        EXPECT_GE(*solution.summary.backward_error, error / 2);
        EXPECT_LE(*solution.summary.backward_error, 20 * error + 1e-15);
      }
    }
  }
}

TEST_P(ComplexTypesTest, RefinesToRoundoff) {
  const auto [matrix, factor_type, rhs] = GetParam();
  constexpr int64_t kN = 50;
  const bool real = !IsComplex(matrix);
  const ComplexMatrix a =
      Rounded(real ? AsComplex(RandomMatrix(kN, kN, 3)) : RandomComplex(kN, kN, 3), matrix);
  const ComplexMatrix b =
      Rounded(IsComplex(rhs) ? RandomComplex(kN, 2, 4) : AsComplex(RandomMatrix(kN, 2, 4)), rhs);
  ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(a, kN, Request(matrix, factor_type)));
  for (const Op op : kOps) {
    SolveRequest request;
    request.dtype = rhs;
    request.op = op;
    request.max_refinement_steps = 10;
    ASSERT_OK_AND_ASSIGN(const ComplexSolution solution, Solve(factor, b, 2, request));
    EXPECT_LT(*solution.summary.backward_error, 4 * UnitRoundoff(rhs));
    EXPECT_GT(solution.summary.refinement_steps,
              UnitRoundoff(factor_type) > UnitRoundoff(rhs) ? 0 : -1);
  }
}

constexpr DType kF32 = DType::kFloat32;
constexpr DType kF64 = DType::kFloat64;
constexpr DType kC64 = DType::kComplex64;
constexpr DType kC128 = DType::kComplex128;

INSTANTIATE_TEST_SUITE_P(All, ComplexTypesTest,
                         ::testing::Values(Types{kC128, kC128, kC128}, Types{kC128, kC128, kC64},
                                           Types{kC128, kC128, kF64}, Types{kC128, kC128, kF32},
                                           Types{kC128, kC64, kC128}, Types{kC64, kC64, kC64},
                                           Types{kC64, kC64, kF32}, Types{kC64, kC128, kC128},
                                           Types{kF64, kF64, kC128}, Types{kF64, kF64, kC64},
                                           Types{kF64, kF32, kC128}, Types{kF32, kF32, kC64}),
                         [](const auto& info) {
                           return std::string(NameOf(std::get<0>(info.param))) + "_" +
                                  std::string(NameOf(std::get<1>(info.param))) + "_" +
                                  std::string(NameOf(std::get<2>(info.param)));
                         });

TEST_F(ComplexJobsTest, ComputesValidConditionsAndBoundsForTheGallery) {
  constexpr int64_t kN = 33;
  for (const ComplexGalleryKind& kind : ComplexGallery()) {
    SCOPED_TRACE(kind.name);
    const ComplexMatrix a = kind.make(kN);
    if (kind.singular_at(kN) > 0 || !kind.well_conditioned) continue;
    FactorRequest request = Request(kC128, kC128);
    request.condition = true;
    ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(a, kN, request));
    EXPECT_LT(RcondRatio(*factor.summary.rcond, ExactRcond(a, kN)), 30);
    // The entries have few digits, so that B is exact and X is known.
    ComplexMatrix x_true(kN);
    for (int64_t i = 0; i < kN; ++i) x_true[i] = {static_cast<double>(i % 5), 1.0};
    for (const Op op : kOps) {
      const ComplexMatrix b = Multiply(a, kN, op, x_true, 1);
      SolveRequest solve;
      solve.op = op;
      solve.dtype = kC128;
      solve.error_bound = true;
      ASSERT_OK_AND_ASSIGN(const ComplexSolution solution, Solve(factor, b, 1, solve));
      EXPECT_TRUE(std::isfinite(*solution.summary.forward_error_bound));
      EXPECT_LE(ErrorOverBound(solution.x, x_true, kN, 1, *solution.summary.forward_error_bound),
                1);
    }
  }
}

// diag(d) with its rows shifted cyclically. The determinant is the product of d times the sign of
// the permutation.
TEST_F(ComplexJobsTest, ComputesPhaseOfDeterminant) {
  const std::vector<Complex> d = {{0, 2}, {3, 4}, {-1, 0}};
  ComplexMatrix a(9);
  for (int64_t j = 0; j < 3; ++j) a[(j + 1) % 3 + 3 * j] = d[j];  // a cycle of three, which is even
  for (const bool swapped : {false, true}) {
    if (swapped) std::swap_ranges(a.begin(), a.begin() + 3, a.begin() + 3);
    FactorRequest request = Request(kC128, kC128);
    request.determinant = true;
    ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(a, 3, request));
    const Complex sign(*factor.summary.det_sign, factor.summary.det_sign_imaginary);
    const Complex product = d[0] * d[1] * d[2] * (swapped ? -1.0 : 1.0);
    EXPECT_LT(std::abs(sign - product / std::abs(product)), 1e-15);
    EXPECT_NEAR(*factor.summary.det_log_abs, std::log(std::abs(product)), 1e-14);
  }
}

TEST_F(ComplexJobsTest, EquilibratesBadlyScaledRowsAndColumns) {
  constexpr int64_t kN = 40;
  ComplexMatrix a = RandomComplex(kN, kN, 5);
  for (int64_t j = 0; j < kN; ++j) {
    for (int64_t i = 0; i < kN; ++i) a[i + j * kN] *= std::ldexp(1.0, 3 * (i % 60) - 2 * (j % 50));
  }
  const ComplexMatrix b = RandomComplex(kN, 2, 6);
  for (const DType factor_type : {kC64, kC128}) {
    FactorRequest request = Request(kC128, factor_type);
    request.equilibrate = EquilibrateMode::kAuto;
    ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(a, kN, request));
    EXPECT_TRUE(factor.summary.row_scaled);
    for (const Op op : kOps) {
      SolveRequest solve;
      solve.op = op;
      solve.dtype = kC128;
      solve.refine_componentwise = true;
      solve.max_refinement_steps = 20;
      ASSERT_OK_AND_ASSIGN(const ComplexSolution solution, Solve(factor, b, 2, solve));
      EXPECT_LT(ComponentwiseError(a, kN, op, solution.x, b, 2), 1e-14);
    }
  }
}

// The parts of the entries are within the range of float64, but moduli and products overflow.
TEST_F(ComplexJobsTest, ComputesBackwardErrorsNearTheEndOfTheRange) {
  constexpr double kLarge = 0x1.8p1023;
  const ComplexMatrix a = {{kLarge, kLarge}, {0, 1}, {1, 0}, {0, kLarge}};
  const ComplexMatrix b = {{kLarge, 0}, {1, kLarge}};
  for (const auto mode : {EquilibrateMode::kAuto, EquilibrateMode::kOn}) {
    FactorRequest request = Request(kC128, kC128);
    request.equilibrate = mode;
    ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(a, 2, request));
    SolveRequest solve;
    solve.dtype = kC128;
    ASSERT_OK_AND_ASSIGN(const ComplexSolution solution, Solve(factor, b, 1, solve));
    EXPECT_LT(*solution.summary.backward_error, 1e-15);
    EXPECT_LT(std::abs(solution.x[0] - Complex(0.5, -0.5)), 1e-15);
    EXPECT_LT(std::abs(solution.x[1] - Complex(1, 0)), 1e-15);
  }
}

// The reciprocal of the pivot 3e38 (1 + i) is within the range of float32, but its computation
// overflows. If X is wrong for this reason, the results must show it.
TEST_F(ComplexJobsTest, ReportsPivotsWithoutAReciprocal) {
  const ComplexMatrix a = {{3e38, 3e38}, 0, 0, 1};
  const ComplexMatrix b = {1e38, 1};
  FactorRequest request = Request(DType::kComplex64, DType::kComplex64);
  request.condition = true;
  request.determinant = true;
  SolveRequest solve;
  solve.dtype = DType::kComplex64;
  solve.error_bound = true;
  const ComplexMatrix x_true = {{1 / 6.0, -1 / 6.0}, 1};
  for (const auto mode : {EquilibrateMode::kOff, EquilibrateMode::kOn}) {
    request.equilibrate = mode;
    ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(a, 2, request));
    ASSERT_OK_AND_ASSIGN(const ComplexSolution solution, Solve(factor, b, 1, solve));
    const double bound = *solution.summary.forward_error_bound;
    // With an infinite bound, X may be anything, including NaN.
    EXPECT_EQ(std::isinf(bound), mode == EquilibrateMode::kOff);
    if (std::isfinite(bound)) {
      EXPECT_LE(ErrorOverBound(solution.x, x_true, 2, 1, bound), 1);
    }
    EXPECT_EQ(std::isinf(factor.summary.pivot_growth), mode == EquilibrateMode::kOff);
    EXPECT_EQ(*factor.summary.rcond == 0, mode == EquilibrateMode::kOff);
    EXPECT_EQ(factor.summary.det_sign.has_value(), mode == EquilibrateMode::kOn);
  }
}

// The modulus of each pivot is subnormal. Rounding changes it by a factor of up to sqrt(2).
TEST_F(ComplexJobsTest, ComputesDeterminantsOfSubnormalPivots) {
  constexpr int64_t kN = 2001;
  ComplexMatrix lu(kN * kN);
  const double part = std::numeric_limits<double>::denorm_min();
  for (int64_t i = 0; i < kN; ++i) lu[i * (kN + 1)] = {part, part};
  ASSERT_OK_AND_ASSIGN(const Buffer factor, runner_->Upload(Packed(lu, kN, kN, kC128)));
  ExecutionContext& context = runner_->context();
  ASSERT_OK(context.ops().InspectFactor({factor.data(), kC128, kN, kN, kN}, /*unit_in_u=*/false,
                                        /*ipiv=*/nullptr, FactorProbe()));
  ASSERT_OK(context.Synchronize());
  const FactorStats& stats = context.report().factor;
  const double log_abs = kN * (-1074 + 0.5) * std::log(2.0);
  EXPECT_NEAR(stats.det_log_abs, log_abs, 1e-12 * std::abs(log_abs));
  // The sign is exp(2001 i pi / 4) = exp(i pi / 4), because 2001 mod 8 = 1.
  EXPECT_NEAR(stats.det_sign, std::sqrt(0.5), 1e-12);
  EXPECT_NEAR(stats.det_sign_imaginary, std::sqrt(0.5), 1e-12);
}

// The modulus of B overflows float64.
TEST_F(ComplexJobsTest, ComputesBackwardErrorsIfModuliOverflow) {
  const ComplexMatrix b = {{1.5e308, 1.5e308}, {1e300, -1e308}};
  for (const DType matrix : {DType::kFloat64, kC128}) {
    const ComplexMatrix a = {3, 1, 0, 3};
    ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(a, 2, Request(matrix, matrix)));
    SolveRequest solve;
    solve.dtype = kC128;
    solve.componentwise_error = true;
    ASSERT_OK_AND_ASSIGN(const ComplexSolution solution, Solve(factor, b, 1, solve));
    EXPECT_LT(*solution.summary.backward_error, 1e-15) << solution.x[0] << solution.x[1];
    EXPECT_LT(*solution.summary.componentwise_error, 1e-15);
  }
}

// The growth is infinite if division by the pivot overflows, not if only its modulus does.
TEST_F(ComplexJobsTest, ReportsInfiniteGrowthIfDivisionByPivotOverflows) {
  for (const double part : {0.6e308, 1.3e308}) {
    const ComplexMatrix a = {{part, part}, 0, 0, 1};
    ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(a, 2, Request(kC128, kC128)));
    EXPECT_EQ(factor.summary.pivot_growth, part < 1e308 ? 1 : INFINITY);
  }
}

TEST_F(ComplexJobsTest, ReportsPositionOfNonFiniteEntries) {
  for (const Complex bad : {Complex(NAN, 0), Complex(0, INFINITY)}) {
    ComplexMatrix a = RandomComplex(5, 5, 7);
    a[3 + 5 * 2] = bad;
    EXPECT_THAT(Factor(a, 5, Request(kC128, kC128)),
                FailsWith(absl::StatusCode::kInvalidArgument, "row 3, column 2"));
  }
  ComplexMatrix a = RandomComplex(5, 5, 7);
  a[4] = {0, 1e39};
  EXPECT_THAT(Factor(a, 5, Request(kC128, kC64)),
              FailsWith(absl::StatusCode::kInvalidArgument, "overflows c64 at row 4, column 0"));
  // A modulus beyond the range of float32 is accepted if both parts are within it.
  a[4] = {3e38, 3e38};
  EXPECT_OK(Factor(a, 5, Request(kC128, kC64)));
}

TEST_F(ComplexJobsTest, RefusesToMixRealAndComplexMatrixAndFactor) {
  const ComplexMatrix a = RandomComplex(3, 3, 8);
  EXPECT_THAT(Factor(a, 3, Request(kC128, kF64)),
              FailsWith(absl::StatusCode::kInvalidArgument, "c128 cannot have a factor in f64"));
  EXPECT_THAT(Factor(AsComplex(RandomMatrix(3, 3, 8)), 3, Request(kF64, kC128)),
              FailsWith(absl::StatusCode::kInvalidArgument, "f64 cannot have a factor in c128"));
}

TEST_F(ComplexJobsTest, ComputesSchurComplements) {
  constexpr int64_t kN = 30;
  constexpr int64_t kK = 12;
  const ComplexMatrix a = Rounded(RandomComplex(kN, kN, 9), kC64);
  for (const auto& [matrix, factor_type] :
       {std::pair{kC128, kC128}, std::pair{kC128, kC64}, std::pair{kC64, kC64}}) {
    SchurOptions options;
    ASSERT_OK_AND_ASSIGN(options.factor, runner_->Options(Request(matrix, factor_type), kK));
    ASSERT_OK_AND_ASSIGN(options.solver, FindSolver(*DeviceUnderTest(), "auto", UnitDiagonal::kL,
                                                    factor_type, kK, kN - kK));
    options.leading = kK;
    const PackedMatrix shape{nullptr, matrix, Layout::kRowMajor, kN, kN};
    ASSERT_OK_AND_ASSIGN(Buffer upload,
                         runner_->Upload(Packed(a, kN, kN, matrix, Layout::kRowMajor)));
    std::vector<std::byte> out((kN - kK) * (kN - kK) * SizeOf(matrix));
    ASSERT_OK_AND_ASSIGN(
        const SchurResult result,
        ComputeSchurComplement(runner_->context(), std::move(upload), shape, options, out.data(),
                               JobRunner::NeverStop(), runner_->timings()));
    const double eps = std::max(UnitRoundoff(matrix), UnitRoundoff(factor_type));
    EXPECT_LT(result.complement->backward_error, kN * eps);
    EXPECT_FALSE(result.complement->is_poor);
    // S^-1 is the last block of A^-1: the solution of A x = (0, y) has x2 = S^-1 y.
    const ComplexMatrix s =
        Unpacked<Complex>(out.data(), {nullptr, matrix, Layout::kColumnMajor, kN - kK, kN - kK});
    ASSERT_OK_AND_ASSIGN(const Factorization whole, Factor(a, kN, Request(kC128, kC128)));
    ComplexMatrix b(kN);
    for (int64_t i = kK; i < kN; ++i) b[i] = {1.0, static_cast<double>(i)};
    SolveRequest solve;
    solve.dtype = kC128;
    ASSERT_OK_AND_ASSIGN(const ComplexSolution x, Solve(whole, b, 1, solve));
    const ComplexMatrix x2(x.x.begin() + kK, x.x.end());
    const ComplexMatrix y = Multiply(s, kN - kK, Op::kNone, x2, 1);
    for (int64_t i = kK; i < kN; ++i) EXPECT_LT(std::abs(y[i - kK] - b[i]), 1e5 * eps);
  }
}

class ComplexDirectSolveTest : public ComplexJobsTest,
                               public ::testing::WithParamInterface<Types> {};

TEST_P(ComplexDirectSolveTest, Solves) {
  const auto [matrix, type, rhs] = GetParam();
  constexpr int64_t kN = 40;
  const bool real = !IsComplex(matrix);
  const ComplexMatrix a =
      Rounded(real ? AsComplex(RandomMatrix(kN, kN, 10)) : RandomComplex(kN, kN, 10), matrix);
  const ComplexMatrix b =
      Rounded(IsComplex(rhs) ? RandomComplex(kN, 2, 11) : AsComplex(RandomMatrix(kN, 2, 11)), rhs);
  for (const bool verify : {false, true}) {
    for (const Layout layout : {Layout::kColumnMajor, Layout::kRowMajor}) {
      DirectSolveOptions options;
      ASSERT_OK_AND_ASSIGN(options.solver,
                           FindDirectSolver(*DeviceUnderTest(), "gauss_jordan", type));
      options.dtype = type;
      options.verify = verify;
      ASSERT_OK_AND_ASSIGN(Buffer a_upload, runner_->Upload(Packed(a, kN, kN, matrix, layout)));
      ASSERT_OK_AND_ASSIGN(Buffer b_upload, runner_->Upload(Packed(b, kN, 2, rhs, layout)));
      ASSERT_OK_AND_ASSIGN(const DirectSolvePlan plan,
                           PlanDirectSolve(options, {nullptr, matrix, layout, kN, kN},
                                           {nullptr, rhs, layout, kN, 2}));
      std::vector<std::byte> out(plan.delivered.bytes());
      ASSERT_OK_AND_ASSIGN(
          const DirectSolveSummary summary,
          SolveDirectly(runner_->context(), plan, std::move(a_upload), std::move(b_upload),
                        out.data(), JobRunner::NeverStop(), runner_->timings()));
      const ComplexMatrix x = Unpacked<Complex>(out.data(), plan.delivered);
      EXPECT_LT(SolveRatio(a, kN, Op::kNone, x, b, 2,
                           UnitRoundoff(type) > UnitRoundoff(rhs) ? type : rhs),
                300);  // Gauss-Jordan elimination is less stable than solving with factors
      ASSERT_EQ(summary.backward_error.has_value(), verify);
      EXPECT_LT(summary.backward_error.value_or(0), 1e3 * UnitRoundoff(kF32));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ComplexDirectSolveTest,
                         ::testing::Values(Types{kC128, kC128, kC128}, Types{kC128, kC128, kF64},
                                           Types{kC128, kC64, kC128}, Types{kC64, kC64, kF32},
                                           Types{kF64, kF64, kC128}, Types{kF64, kF64, kC64},
                                           Types{kF32, kF32, kC64}));

}  // namespace
}  // namespace crout::testing::complex_jobs_test
