// SPDX-License-Identifier: Apache-2.0

// Tests cuSOLVERMp's methods with fake libraries, which compute the true factors on the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/groups/gpus_under_test.h"
#include "tests/support/matrices/gallery.h"
#include "tests/support/ratios.h"
#include "tests/support/timing/eventually.h"

namespace crout::testing::cusolvermp_test {
namespace {

// Orders around the blocks of 64, 128 and 256, and with processes that have no block.
constexpr int64_t kOrders[] = {1, 64, 65, 129, 300, 600};

template <class Gpus>
class CusolvermpTest : public GpuGroupTest<Gpus::value> {};
// One GPU, one row of two, and a grid of 2 x 2.
using Groups = ::testing::Types<std::integral_constant<int, 1>, std::integral_constant<int, 2>,
                                std::integral_constant<int, 4>>;
TYPED_TEST_SUITE(CusolvermpTest, Groups);

TYPED_TEST(CusolvermpTest, FactorsHaveTheAccuracyOfLapack) {
  JobRunner runner(this->device());
  for (const int64_t n : kOrders) {
    SCOPED_TRACE(n);
    const HostMatrix a = RandomMatrix(n, n, 1);
    ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.Factor(a, n, this->Cusolvermp()));
    EXPECT_EQ(factor.summary.algorithm, "cusolvermp");
    EXPECT_EQ(factor.summary.info, 0);
    ASSERT_OK_AND_ASSIGN(const HostFactor lu, runner.Download(factor));
    EXPECT_LT(FactorRatio(a, n, lu.lu, lu.ipiv, UnitDiagonal::kL, DType::kFloat64), kThreshold);
  }
}

TYPED_TEST(CusolvermpTest, SolvesWithManyColumnsAndTransposed) {
  JobRunner runner(this->device());
  SolveRequest request = this->BySolver();
  for (const int64_t n : kOrders) {
    const HostMatrix a = RandomMatrix(n, n, 2);
    ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.Factor(a, n, this->Cusolvermp()));
    // More columns than a block has, for small orders.
    for (const int64_t nrhs : {1, 70}) {
      const HostMatrix b = RandomMatrix(n, nrhs, 3);
      for (const Op op : kOps) {
        SCOPED_TRACE(::testing::Message() << n << " x " << nrhs << " op " << static_cast<int>(op));
        request.op = op;
        ASSERT_OK_AND_ASSIGN(const Solution solution, runner.Solve(factor, b, nrhs, request));
        EXPECT_EQ(solution.summary.solver, "cusolvermp");
        EXPECT_LT(SolveRatio(a, n, op, solution.x, b, nrhs, DType::kFloat64), kThreshold);
        EXPECT_LE(*solution.summary.backward_error, AcceptedBackwardError(DType::kFloat64, n));
      }
    }
  }
}

TYPED_TEST(CusolvermpTest, SolvesInEachType) {
  JobRunner runner(this->device());
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
    FactorRequest request = this->Cusolvermp();
    request.matrix_dtype = request.factor_dtype = dtype;
    ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.FactorComplex(take(a), kN, request));
    SolveRequest solve = this->BySolver();
    solve.dtype = dtype;
    for (const Op op : kOps) {
      solve.op = op;
      ASSERT_OK_AND_ASSIGN(const ComplexSolution solution,
                           runner.SolveComplex(factor, take(b), 2, solve));
      EXPECT_LT(SolveRatio(take(a), kN, op, solution.x, take(b), 2, dtype), kThreshold);
    }
  }
}

TYPED_TEST(CusolvermpTest, ReportsConditionAndDeterminantAsTheHost) {
  constexpr int64_t kN = 200;
  const HostMatrix a = RandomMatrix(kN, kN, 6);
  FactorRequest request = this->Cusolvermp();
  request.condition = request.determinant = true;
  JobRunner runner(this->device());
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.Factor(a, kN, request));
  const std::unique_ptr<Device> host = host::MakeDevice({});
  JobRunner on_host(*host);
  request.algorithm = "getrf";
  ASSERT_OK_AND_ASSIGN(const Factorization expected, on_host.Factor(a, kN, request));
  EXPECT_NEAR(*factor.summary.rcond, *expected.summary.rcond, 1e-6 * *expected.summary.rcond);
  EXPECT_EQ(factor.summary.det_sign, expected.summary.det_sign);
  EXPECT_NEAR(*factor.summary.det_log_abs, *expected.summary.det_log_abs, 1e-9);
}

TYPED_TEST(CusolvermpTest, FindsTheFirstZeroPivot) {
  JobRunner runner(this->device());
  constexpr int64_t kN = 150;
  HostMatrix a = Identity(kN);
  a[100 + 100 * kN] = 0;
  a[100 + 120 * kN] = 1;  // no empty row
  a[130 + 100 * kN] = 0;
  a[90 + 100 * kN] = 1;  // no empty column
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.Factor(a, kN, this->Cusolvermp()));
  EXPECT_EQ(factor.summary.info, 101);
}

TYPED_TEST(CusolvermpTest, KeepsAFactorOnTheGpusUntilItIsFreed) {
  constexpr int64_t kN = 512;
  // All blocks of a rank; a copy has a block column of it.
  constexpr size_t kMatrixBytes = kN * kN * sizeof(double) / TypeParam::value;
  constexpr int kGpus = TypeParam::value;
  const HostMatrix b = RandomMatrix(kN, 1, 8);
  JobRunner runner(this->device());
  const auto allocated = [&] { return this->gpus().Calls("cudaMalloc", kMatrixBytes); };
  const auto freed = [&] { return this->gpus().Calls("cudaFree", kMatrixBytes); };
  const int64_t freed_before = freed();
  const int64_t allocated_before = allocated();
  for (int factors = 1; factors <= 2; ++factors) {
    const HostMatrix a = RandomMatrix(kN, kN, 7 + factors);
    ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.Factor(a, kN, this->Cusolvermp()));
    for (int solves = 0; solves < 3; ++solves) {
      ASSERT_OK_AND_ASSIGN(const Solution solution, runner.Solve(factor, b, 1, this->BySolver()));
      EXPECT_LT(SolveRatio(a, kN, Op::kNone, solution.x, b, 1, DType::kFloat64), kThreshold);
      // By the factorization, and by the first solve.
      EXPECT_EQ(allocated() - allocated_before, 2 * factors * kGpus);
      EXPECT_EQ(freed() - freed_before, (2 * factors - 1) * kGpus);
    }
  }
  EXPECT_TRUE(Eventually([&] { return freed() - freed_before == 4 * kGpus; }));
}

TYPED_TEST(CusolvermpTest, FreesKeptFactorsIfMemoryIsShort) {
  constexpr int64_t kN = 512;
  constexpr int kGpus = TypeParam::value;
  constexpr int64_t kMatrixBytes = kN * kN * sizeof(double) / kGpus;
  const HostMatrix b = RandomMatrix(kN, 1, 8);
  JobRunner runner(this->device());
  std::string limits;
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    absl::StrAppend(&limits, "memory ", gpu, " ", 2 * kMatrixBytes + kMatrixBytes / 2, "\n");
  }
  this->gpus().SetFaults(limits);
  const HostMatrix matrices[] = {RandomMatrix(kN, kN, 9), RandomMatrix(kN, kN, 10),
                                 RandomMatrix(kN, kN, 11)};
  std::vector<Factorization> factors;
  for (const HostMatrix& a : matrices) {
    ASSERT_OK_AND_ASSIGN(factors.emplace_back(), runner.Factor(a, kN, this->Cusolvermp()));
    ASSERT_OK(runner.Solve(factors.back(), b, 1, this->BySolver()));
  }
  for (size_t i = 0; i < factors.size(); ++i) {
    ASSERT_OK_AND_ASSIGN(const Solution solution, runner.Solve(factors[i], b, 1, this->BySolver()));
    EXPECT_LT(SolveRatio(matrices[i], kN, Op::kNone, solution.x, b, 1, DType::kFloat64),
              kThreshold);
  }
}

TYPED_TEST(CusolvermpTest, SolvesWithFactorsOfScalapack) {
  constexpr int64_t kN = 200;
  const HostMatrix a = RandomMatrix(kN, kN, 12);
  const HostMatrix b = RandomMatrix(kN, 1, 13);
  FactorRequest request;
  request.algorithm = "scalapack";
  JobRunner runner(this->device());
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.Factor(a, kN, request));
  ASSERT_OK_AND_ASSIGN(const Solution solution, runner.Solve(factor, b, 1, this->BySolver()));
  EXPECT_EQ(solution.summary.solver, "cusolvermp");
  EXPECT_LT(SolveRatio(a, kN, Op::kNone, solution.x, b, 1, DType::kFloat64), kThreshold);
}

TYPED_TEST(CusolvermpTest, PredictsAndRefusesByTheMemoryOfTheGpus) {
  const auto is_cusolvermp = [](const auto& method) { return method->name() == "cusolvermp"; };
  const auto found = std::ranges::find_if(this->device().algorithms(), is_cusolvermp);
  ASSERT_NE(found, this->device().algorithms().end());
  const LuAlgorithm& method = **found;
  const auto solver = std::ranges::find_if(this->device().solvers(), is_cusolvermp);
  ASSERT_NE(solver, this->device().solvers().end());
  EXPECT_GT(this->group().GpuBytes(), 0u);
  // The fake GPUs have 1 GiB.
  EXPECT_GT(method.PredictSeconds(DType::kFloat64, 10000),
            2 * method.PredictSeconds(DType::kFloat64, 5000));
  EXPECT_LT(method.PredictSeconds(DType::kFloat64, 10000), 10);
  EXPECT_LT((*solver)->PredictSeconds(DType::kFloat64, 10000, 1), 10);
  // Another method must be chosen for a matrix that does not fit.
  constexpr double kYear = 3e7;
  EXPECT_GT(method.PredictSeconds(DType::kFloat64, 40000), kYear);
  EXPECT_GT((*solver)->PredictSeconds(DType::kFloat64, 40000, 1), kYear);
  EXPECT_OK(method.WorkspaceBytes(DType::kFloat64, 10000, {}));
  EXPECT_THAT(method.WorkspaceBytes(DType::kFloat64, 40000, {}),
              FailsWith(absl::StatusCode::kResourceExhausted, "Use a group of more GPUs"));
}

}  // namespace
}  // namespace crout::testing::cusolvermp_test
