// SPDX-License-Identifier: Apache-2.0

// Tests the methods of a group of four ranks.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <vector>

#include "tests/server/groups/group_under_test.h"
#include "tests/support/matrices/gallery.h"
#include "tests/support/ratios.h"

namespace crout::testing::scalapack_test {
namespace {

using ScalapackTest = GroupTest<4>;

// Orders around the blocks of 64 and the grid of 2 x 2, whose round has 128 rows.
constexpr int64_t kOrders[] = {1, 64, 65, 129, 200, 500};

TEST_F(ScalapackTest, FactorsHaveTheAccuracyOfLapack) {
  JobRunner runner(device());
  for (const int64_t n : kOrders) {
    SCOPED_TRACE(n);
    const HostMatrix a = RandomMatrix(n, n, 1);
    ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.Factor(a, n, Scalapack()));
    EXPECT_EQ(factor.summary.algorithm, "scalapack");
    EXPECT_EQ(factor.summary.info, 0);
    ASSERT_OK_AND_ASSIGN(const HostFactor lu, runner.Download(factor));
    EXPECT_LT(FactorRatio(a, n, lu.lu, lu.ipiv, UnitDiagonal::kL, DType::kFloat64), kThreshold);
  }
}

TEST_F(ScalapackTest, SolvesWithManyColumnsAndTransposed) {
  JobRunner runner(device());
  for (const int64_t n : kOrders) {
    const HostMatrix a = RandomMatrix(n, n, 2);
    ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.Factor(a, n, Scalapack()));
    for (const int64_t nrhs : {1, 70}) {
      const HostMatrix b = RandomMatrix(n, nrhs, 3);
      for (const Op op : kOps) {
        SCOPED_TRACE(::testing::Message() << n << " x " << nrhs << " op " << static_cast<int>(op));
        ASSERT_OK_AND_ASSIGN(const Solution solution, runner.Solve(factor, b, nrhs, {.op = op}));
        EXPECT_EQ(solution.summary.solver, "scalapack");
        EXPECT_LT(SolveRatio(a, n, op, solution.x, b, nrhs, DType::kFloat64), kThreshold);
        EXPECT_LE(*solution.summary.backward_error, AcceptedBackwardError(DType::kFloat64, n));
      }
    }
  }
}

TEST_F(ScalapackTest, SolvesInEachType) {
  JobRunner runner(device());
  constexpr int64_t kN = 300;
  const ComplexMatrix a = RandomComplex(kN, kN, 4);
  const ComplexMatrix b = RandomComplex(kN, 2, 5);
  for (const DType dtype : kDTypes) {
    SCOPED_TRACE(NameOf(dtype));
    const auto take = [dtype](ComplexMatrix m) {
      if (!IsComplex(dtype)) {
        for (std::complex<double>& z : m) z = z.real();
      }
      return Rounded(m, dtype);
    };
    FactorRequest request = Scalapack();
    request.matrix_dtype = request.factor_dtype = dtype;
    ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.FactorComplex(take(a), kN, request));
    for (const Op op : kOps) {
      ASSERT_OK_AND_ASSIGN(const ComplexSolution solution,
                           runner.SolveComplex(factor, take(b), 2, {.dtype = dtype, .op = op}));
      EXPECT_LT(SolveRatio(take(a), kN, op, solution.x, take(b), 2, dtype), kThreshold);
    }
  }
}

TEST_F(ScalapackTest, ReportsConditionAndDeterminantAsTheHost) {
  constexpr int64_t kN = 200;
  const HostMatrix a = RandomMatrix(kN, kN, 6);
  FactorRequest request = Scalapack();
  request.condition = request.determinant = true;
  JobRunner runner(device());
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.Factor(a, kN, request));
  const std::unique_ptr<Device> host = host::MakeDevice({});
  JobRunner on_host(*host);
  request.algorithm = "getrf";
  ASSERT_OK_AND_ASSIGN(const Factorization expected, on_host.Factor(a, kN, request));
  EXPECT_NEAR(*factor.summary.rcond, *expected.summary.rcond, 1e-6 * *expected.summary.rcond);
  EXPECT_EQ(factor.summary.det_sign, expected.summary.det_sign);
  EXPECT_NEAR(*factor.summary.det_log_abs, *expected.summary.det_log_abs, 1e-9);
}

TEST_F(ScalapackTest, FindsTheFirstZeroPivot) {
  JobRunner runner(device());
  constexpr int64_t kN = 150;
  HostMatrix a = Identity(kN);
  a[100 + 100 * kN] = 0;
  a[100 + 120 * kN] = 1;  // no empty row
  a[130 + 100 * kN] = 0;
  a[90 + 100 * kN] = 1;  // no empty column
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.Factor(a, kN, Scalapack()));
  EXPECT_EQ(factor.summary.info, 101);
}

TEST_F(ScalapackTest, RepeatsItsBits) {
  constexpr int64_t kN = 400;
  const HostMatrix a = RandomMatrix(kN, kN, 7);
  const HostMatrix b = RandomMatrix(kN, 2, 8);
  JobRunner runner(device());
  std::vector<HostMatrix> factors, solutions;
  for (int run = 0; run < 3; ++run) {
    ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.Factor(a, kN, Scalapack()));
    ASSERT_OK_AND_ASSIGN(const HostFactor lu, runner.Download(factor));
    ASSERT_OK_AND_ASSIGN(const Solution solution, runner.Solve(factor, b, 2, {}));
    factors.push_back(lu.lu);
    solutions.push_back(solution.x);
  }
  EXPECT_EQ(factors[0], factors[1]);
  EXPECT_EQ(factors[0], factors[2]);
  EXPECT_EQ(solutions[0], solutions[1]);
  EXPECT_EQ(solutions[0], solutions[2]);
}

TEST_F(ScalapackTest, FactorsSparseUploadsAndRefines) {
  constexpr int64_t kN = 200;
  HostMatrix a = Identity(kN);
  for (int64_t i = 1; i < kN; ++i) a[i + (i - 1) * kN] = 0.5;
  FactorRequest request = Scalapack();
  request.sparse = true;
  JobRunner runner(device());
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.Factor(a, kN, request));
  const HostMatrix b = RandomMatrix(kN, 1, 9);
  SolveRequest solve;
  solve.componentwise_error = solve.error_bound = true;
  solve.max_refinement_steps = 3;
  ASSERT_OK_AND_ASSIGN(const Solution solution, runner.Solve(factor, b, 1, solve));
  EXPECT_LT(SolveRatio(a, kN, Op::kNone, solution.x, b, 1, DType::kFloat64), kThreshold);
}

TEST_F(ScalapackTest, PredictsLargerOrdersToTakeLonger) {
  const LuAlgorithm& method = *device().algorithms().front();
  EXPECT_GT(method.PredictSeconds(DType::kFloat64, 4000),
            4 * method.PredictSeconds(DType::kFloat64, 2000));
  // 46341^2 elements exceed the indices of one rank, and a quarter of 92682^2 those of four.
  EXPECT_OK(method.WorkspaceBytes(DType::kFloat64, 92000, {}));
  EXPECT_THAT(method.WorkspaceBytes(DType::kFloat64, 93000, {}),
              FailsWith(absl::StatusCode::kUnimplemented, "Use a group of more ranks"));
}

}  // namespace
}  // namespace crout::testing::scalapack_test
