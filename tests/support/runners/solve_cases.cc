// SPDX-License-Identifier: Apache-2.0

#include "tests/support/runners/solve_cases.h"

#include <cmath>
#include <vector>

#include "kernels/jobs/factorize.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing {
namespace {

constexpr double kRoundoff = 0x1p-53;

// Multiplies column j by 2^exponents[j].
HostMatrix ColumnsScaled(HostMatrix b, int64_t n, const std::vector<int>& exponents) {
  for (size_t j = 0; j < exponents.size(); ++j) {
    for (int64_t i = 0; i < n; ++i) b[i + j * n] = std::ldexp(b[i + j * n], exponents[j]);
  }
  return b;
}

// Multiplies the first row of `a` by 2^40, but its first element only by 2^10. This element becomes
// the pivot as the largest of its column, although it is small compared with its row.
HostMatrix WithALargeFirstRow(HostMatrix a, int64_t n) {
  for (int64_t j = 0; j < n; ++j) a[j * n] *= j == 0 ? 0x1p10 : 0x1p40;
  return a;
}

// An upper triangular matrix whose row and column sums overflow. The factors cannot overflow.
HostMatrix NearTheLargest(int64_t n) {
  const HostMatrix random = RandomMatrix(n, n, 5);
  HostMatrix a(n * n, 0.0);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i <= j; ++i) {
      a[i + j * n] = i == j ? 0x1.8p1022 : 0x1p1021 * (1 + random[i + j * n] / 2);
    }
  }
  return a;
}

HostMatrix Times(HostMatrix a, double factor) {
  for (double& v : a) v *= factor;
  return a;
}

class Multiples {
 public:
  Multiples(JobRunner& runner, const Factorization& factor, const HostMatrix& a, Op op)
      : runner_(runner), factor_(factor), a_(a), n_(factor.summary.n) {
    request_.op = op;
  }

  void Expect(const std::vector<int>& exponents) {
    const auto nrhs = static_cast<int64_t>(exponents.size());
    const HostMatrix b = RandomMatrix(n_, nrhs, 5);
    const HostMatrix scaled = ColumnsScaled(b, n_, exponents);
    for (const bool verify : {true, false}) {
      request_.verify = verify;
      ASSERT_OK_AND_ASSIGN(const Solution plain, runner_.Solve(factor_, b, nrhs, request_));
      ASSERT_OK_AND_ASSIGN(const Solution multiple, runner_.Solve(factor_, scaled, nrhs, request_));
      EXPECT_EQ(multiple.x, ColumnsScaled(plain.x, n_, exponents));
      if (!verify) continue;
      // The tolerance is large because the residual of the column with the smallest scale has only
      // a few bits.
      EXPECT_NEAR(*multiple.summary.backward_error, *plain.summary.backward_error,
                  1e-6 * *plain.summary.backward_error);
    }
    request_.verify = request_.error_bound = true;
    ASSERT_OK_AND_ASSIGN(const Solution bounded, runner_.Solve(factor_, scaled, nrhs, request_));
    request_.max_refinement_steps = 10;
    ASSERT_OK_AND_ASSIGN(const Solution refined, runner_.Solve(factor_, scaled, nrhs, request_));
    request_.max_refinement_steps = 0;
    request_.error_bound = false;
    EXPECT_GE(refined.summary.refinement_steps, 1);
    EXPECT_LT(*refined.summary.backward_error, 4 * kRoundoff);
    EXPECT_LT(BackwardError(a_, n_, request_.op, refined.x, scaled, nrhs), 4 * kRoundoff);
    // The error of the refined solution is negligible compared with the error of a float32 factor.
    const double bound = *bounded.summary.forward_error_bound;
    EXPECT_LT(ErrorOverBound(bounded.x, refined.x, n_, nrhs, bound), 1);
    EXPECT_LT(bound, 1e-2);
  }

 private:
  JobRunner& runner_;
  const Factorization& factor_;
  const HostMatrix& a_;
  const int64_t n_;
  SolveRequest request_;
};

}  // namespace

void ExpectSolutionsScaleWithRightHandSides(Device& device) {
  constexpr int64_t kN = 60;
  JobRunner runner(device);
  for (const char* kind : {"diagonally_dominant", "near_underflow", "near_overflow"}) {
    for (const EquilibrateMode equilibrate : {EquilibrateMode::kOff, EquilibrateMode::kOn}) {
      SCOPED_TRACE(::testing::Message() << kind << " " << static_cast<int>(equilibrate));
      const HostMatrix a = GalleryNamed(kind).make(kN);
      FactorRequest request;
      request.factor_dtype = DType::kFloat32;
      request.equilibrate = equilibrate;
      ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.Factor(a, kN, request));
      for (const Op op : {Op::kNone, Op::kTranspose}) {
        Multiples multiples(runner, factor, a, op);
        multiples.Expect({-97, 130, 0});  // factors of 1e-29, 1e39 and 1
        // With these exponents the solutions neither overflow nor become subnormal.
        multiples.Expect({kind == std::string("near_underflow") ? 880 : 985});
        multiples.Expect({0, kind == std::string("near_overflow") ? -880 : -990});
      }
    }
  }
}

void ExpectComponentwiseRefinementCorrectsSolution(Device& device) {
  constexpr int64_t kN = 40;
  JobRunner runner(device);
  const HostMatrix a = WithALargeFirstRow(RandomMatrix(kN, kN, 1), kN);
  FactorRequest request;
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.Factor(a, kN, request));
  for (const int64_t nrhs : {1, 3}) {
    const HostMatrix b = Multiply(a, kN, Op::kNone, RandomMatrix(kN, nrhs, 2), nrhs);
    SolveRequest solve;
    ASSERT_OK_AND_ASSIGN(const Solution silent, runner.Solve(factor, b, nrhs, solve));
    EXPECT_FALSE(silent.summary.componentwise_error.has_value());
    solve.componentwise_error = true;
    solve.max_refinement_steps = 5;
    ASSERT_OK_AND_ASSIGN(const Solution plain, runner.Solve(factor, b, nrhs, solve));
    EXPECT_EQ(plain.x, silent.x);
    EXPECT_LT(*plain.summary.backward_error, 2 * kRoundoff);
    EXPECT_GT(*plain.summary.componentwise_error, 1e-10);
    EXPECT_EQ(plain.summary.refinement_steps, 0);
    const double exact = ComponentwiseError(a, kN, Op::kNone, plain.x, b, nrhs);
    EXPECT_NEAR(*plain.summary.componentwise_error, exact, 1e-5 * exact);
    solve.componentwise_error = false;  // implied by refine_componentwise
    solve.refine_componentwise = true;
    ASSERT_OK_AND_ASSIGN(const Solution mended, runner.Solve(factor, b, nrhs, solve));
    EXPECT_GE(mended.summary.refinement_steps, 1);
    EXPECT_LT(*mended.summary.componentwise_error, 4 * kRoundoff);
    EXPECT_LT(ComponentwiseError(a, kN, Op::kNone, mended.x, b, nrhs), 4 * kRoundoff);
    EXPECT_LT(*mended.summary.backward_error, 2 * kRoundoff);
  }
}

void ExpectErrorsAtTheEndOfTheRange(Device& device) {
  constexpr int64_t kN = 12;
  JobRunner runner(device);
  const auto expect = [&](const HostMatrix& a, int64_t n, const HostMatrix& b, Op op,
                          DType factor_dtype, EquilibrateMode equilibrate) {
    SCOPED_TRACE(::testing::Message()
                 << "n=" << n << " op " << static_cast<int>(op) << " " << NameOf(factor_dtype));
    FactorRequest request;
    request.factor_dtype = factor_dtype;
    request.equilibrate = equilibrate;
    ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.Factor(a, n, request));
    SolveRequest solve;
    solve.op = op;
    for (const bool componentwise : {false, true}) {
      solve.componentwise_error = componentwise;
      solve.max_refinement_steps = componentwise ? 5 : 0;
      ASSERT_OK_AND_ASSIGN(const Solution solution, runner.Solve(factor, b, 1, solve));
      // Scaling the system does not change the errors, but avoids overflow in the reference. The
      // errors of the summary include rounding because residuals are summed in float64.
      const HostMatrix small = Times(a, 0x1p-64);
      const HostMatrix rhs = Times(b, 0x1p-64);
      const double exact = BackwardError(small, n, op, solution.x, rhs, 1);
      EXPECT_NEAR(*solution.summary.backward_error, exact, 1e-6 * exact + kRoundoff);
      EXPECT_LT(exact, static_cast<double>(n) * UnitRoundoff(factor_dtype));
      if (!componentwise) continue;
      EXPECT_LT(exact, 4 * kRoundoff);
      const double each = ComponentwiseError(small, n, op, solution.x, rhs, 1);
      EXPECT_NEAR(*solution.summary.componentwise_error, each, 1e-6 * each + kRoundoff);
    }
  };
  const HostMatrix large = NearTheLargest(kN);
  for (const Op op : {Op::kNone, Op::kTranspose}) {
    const HostMatrix truth = Times(RandomMatrix(kN, 1, 6), 0x1p-5);
    const HostMatrix b = Multiply(large, kN, op, truth, 1);
    expect(large, kN, b, op, DType::kFloat64, EquilibrateMode::kOff);
    expect(large, kN, b, op, DType::kFloat64, EquilibrateMode::kOn);
    expect(large, kN, b, op, DType::kFloat32, EquilibrateMode::kOn);
  }
  // The norms are finite, but the sum of three terms of the first row, 3 * 2^1023, overflows.
  const HostMatrix a = {1, 0, 0, 1, 1, 1, 0, 0, 1, 0, 1, 0, -2.5, -1.5, -1.5, -1.5};
  const HostMatrix b = {0x1p1022, -0x1p1022, -0x1p1022, -0x1p1022};
  expect(Times(a, 0x1p1000), 4, b, Op::kNone, DType::kFloat64, EquilibrateMode::kOn);
}

}  // namespace crout::testing
