// SPDX-License-Identifier: Apache-2.0

// Tests that the forward error bound holds (GET07) and is not too large.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/host/device/host_device.h"
#include "kernels/jobs/factorize.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::error_bound_test {
namespace {

struct Case {
  const char* kind;
  const char* algorithm;
  DType factor_dtype;
  DType rhs_dtype;
  EquilibrateMode equilibrate;
  int steps;
};

class ErrorBoundTest : public ::testing::TestWithParam<Case> {};

TEST_P(ErrorBoundTest, BoundsTheTrueError) {
  const Case& c = GetParam();
  const std::unique_ptr<Device> device = host::MakeDevice({});
  JobRunner runner(*device);
  for (const int64_t n : {1, 2, 10, 50}) {
    // The entries are multiples of 2^-10, so that b is exact and the true solution is known.
    HostMatrix a = GalleryNamed(c.kind).make(n);
    for (double& v : a) v = std::nearbyint(v * 0x1p10) * 0x1p-10;
    HostMatrix x_true = RandomMatrix(n, 3, 7);
    for (double& v : x_true) v = std::nearbyint(v * 0x1p4);
    FactorRequest request;
    request.algorithm = c.algorithm;
    request.factor_dtype = c.factor_dtype;
    request.equilibrate = c.equilibrate;
    ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.Factor(a, n, request));
    for (const Op op : {Op::kNone, Op::kTranspose}) {
      SCOPED_TRACE(n);
      const HostMatrix b = Multiply(a, n, op, x_true, 3);
      ASSERT_EQ(Rounded(b, c.rhs_dtype), b);
      SolveRequest solve;
      solve.op = op;
      solve.dtype = c.rhs_dtype;
      solve.error_bound = true;
      solve.max_refinement_steps = c.steps;
      ASSERT_OK_AND_ASSIGN(const Solution solution, runner.Solve(factor, b, 3, solve));
      ASSERT_TRUE(solution.summary.forward_error_bound.has_value());
      const double bound = *solution.summary.forward_error_bound;
      EXPECT_LE(ErrorOverBound(solution.x, x_true, n, 3, bound), 1);
      const double exact_rcond = ExactRcond(a, n);
      EXPECT_LT(bound,
                10 * static_cast<double>(n + 1) * UnitRoundoff(c.factor_dtype) / exact_rcond +
                    10 * UnitRoundoff(c.rhs_dtype));
    }
  }
}

constexpr auto kOff = EquilibrateMode::kOff;
constexpr auto kOn = EquilibrateMode::kOn;
constexpr auto kF32 = DType::kFloat32;
constexpr auto kF64 = DType::kFloat64;
INSTANTIATE_TEST_SUITE_P(
    All, ErrorBoundTest,
    ::testing::Values(Case{"random", "getrf", kF64, kF64, kOff, 0},
                      Case{"random", "cmpp", kF64, kF64, kOn, 1},
                      Case{"diagonally_dominant", "getrf", kF64, kF32, kOff, 0},
                      Case{"diagonally_dominant", "getrf", kF32, kF64, kOff, 0},
                      Case{"diagonally_dominant", "cmpp", kF32, kF64, kOn, 5},
                      Case{"upper_triangular", "getrf", kF64, kF64, kOn, 0}));

class RoughFactorTest : public ::testing::Test {
 protected:
  absl::StatusOr<Factorization> Factor(const HostMatrix& a, int64_t n) {
    FactorRequest request;
    request.factor_dtype = DType::kFloat32;
    return runner_.Factor(a, n, request);
  }

  absl::StatusOr<Solution> Solve(const Factorization& factor, const HostMatrix& b, int steps,
                                 Op op = Op::kNone) {
    SolveRequest request;
    request.op = op;
    request.error_bound = true;
    request.max_refinement_steps = steps;
    return runner_.Solve(factor, b, 1, request);
  }

  const std::unique_ptr<Device> device_ = host::MakeDevice({});
  JobRunner runner_{*device_};
};

TEST_F(RoughFactorTest, BoundsTheErrorWithAnInaccurateFactor) {
  for (const double condition : {1e4, 1e6, 1e8, 1e10}) {
    for (const int64_t n : {3, 10, 30}) {
      for (uint64_t seed = 0; seed < 20; ++seed) {
        SCOPED_TRACE(::testing::Message() << condition << " " << n << " " << seed);
        // The entries have few digits, so that b is exact and the true solution is known.
        const HostMatrix a = OnGrid(WithCondition(n, condition, seed), 0x1p-40);
        const HostMatrix x_true = OnGrid(RandomMatrix(n, 1, seed), 0x1p-5);
        ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(a, n));
        if (factor.summary.info > 0) continue;
        for (const int steps : {0, 30}) {
          const Op op = seed % 2 == 0 ? Op::kNone : Op::kTranspose;
          const HostMatrix b = Multiply(a, n, op, x_true, 1);
          ASSERT_OK_AND_ASSIGN(const Solution solution, Solve(factor, b, steps, op));
          const double bound = *solution.summary.forward_error_bound;
          EXPECT_LE(ErrorOverBound(solution.x, x_true, n, 1, bound), 1) << bound;
          if (condition == 1e4) {
            EXPECT_LT(bound, steps == 0 ? 0.1 : 1e-9);
          }
        }
      }
    }
  }
}

// Solves a system of order 3 by Cramer's rule in long double. With 64 bits of precision, the
// solution has 5 correct digits for a condition number of 1e14.
HostMatrix SolveInLongDouble(const HostMatrix& a, const HostMatrix& b) {
  const auto determinant = [&](int replaced) {
    const auto at = [&](int i, int j) -> long double {
      return j == replaced ? b[i] : a[i + 3 * j];
    };
    long double sum = 0;
    for (int j = 0; j < 3; ++j) {
      const int k = (j + 1) % 3;
      const int l = (j + 2) % 3;
      sum += at(0, j) * (at(1, k) * at(2, l) - at(1, l) * at(2, k));
    }
    return sum;
  };
  HostMatrix x(3);
  for (int j = 0; j < 3; ++j) {
    x[j] = static_cast<double>(determinant(j) / determinant(-1));
  }
  return x;
}

// The condition number is 2.6e14. The inverse of the float32 factor has no correct digit, and
// refinement ends at an X whose first digit is wrong. Rounding errors, which depend on the
// processor, decide whether a pivot becomes 0. The test therefore tries all orders of the columns
// and requires that at least one has no zero pivot.
TEST_F(RoughFactorTest, ReportsLargeBoundIfRefinementEndsAtAWrongX) {
  const HostMatrix a = {4.8571430000069,  0.8571429999396,     2.2857139998937,
                        -5.1428569999682, -5.1428569999013005, -9.539999999999999e-11,
                        1.1428570000353,  5.1428570002324,     -2.285714000095};
  const HostMatrix b = {0.8571430000740001, 0.8571430002706997, -2.966999979037155e-10};
  std::vector<int> columns = {0, 1, 2};
  int bounded = 0;
  do {
    SCOPED_TRACE(::testing::PrintToString(columns));
    HostMatrix permuted;
    for (const int j : columns) permuted.insert(permuted.end(), &a[3 * j], &a[3 * j] + 3);
    ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(permuted, 3));
    if (factor.summary.info > 0) continue;
    ASSERT_OK_AND_ASSIGN(const Solution solution, Solve(factor, b, 30));
    const HostMatrix x_true = SolveInLongDouble(permuted, b);
    EXPECT_LE(ErrorOverBound(solution.x, x_true, 3, 1, *solution.summary.forward_error_bound), 1);
    ++bounded;
  } while (std::next_permutation(columns.begin(), columns.end()));
  EXPECT_GT(bounded, 0);
}

// The bound uses a norm estimate, which is only a lower bound and may miss the error.
TEST_F(RoughFactorTest, BoundsTheErrorOfManyRandomMatrices) {
  for (uint64_t seed = 0; seed < 700; ++seed) {
    SCOPED_TRACE(seed);
    const auto n = static_cast<int64_t>(2 + seed % 28);
    const HostMatrix a = OnGrid(RandomMatrix(n, n, seed), 0x1p-40);
    const HostMatrix x_true = OnGrid(RandomMatrix(n, 1, seed + 1000), 0x1p-5);
    ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(a, n));
    const HostMatrix b = Multiply(a, n, Op::kNone, x_true, 1);
    ASSERT_OK_AND_ASSIGN(const Solution solution, Solve(factor, b, 0));
    const double bound = *solution.summary.forward_error_bound;
    EXPECT_LE(ErrorOverBound(solution.x, x_true, n, 1, bound), 1) << bound;
  }
}

TEST(ErrorBoundEdgeTest, HandlesZeros) {
  const std::unique_ptr<Device> device = host::MakeDevice({});
  JobRunner runner(*device);
  SolveRequest solve;
  solve.error_bound = true;
  ASSERT_OK_AND_ASSIGN(const Factorization one, runner.Factor({1}, 1, {}));
  ASSERT_OK_AND_ASSIGN(const Solution zero, runner.Solve(one, {0}, 1, solve));
  EXPECT_EQ(*zero.summary.forward_error_bound, 0);
  // X underflows to 0, so the relative error has no finite bound.
  ASSERT_OK_AND_ASSIGN(const Factorization large, runner.Factor({1e200}, 1, {}));
  ASSERT_OK_AND_ASSIGN(const Solution underflow, runner.Solve(large, {1e-200}, 1, solve));
  EXPECT_EQ(underflow.x, HostMatrix{0});
  EXPECT_EQ(*underflow.summary.forward_error_bound, INFINITY);
}

// Bad scaling of columns or rows alone must not make the bound infinite.
TEST(ErrorBoundEdgeTest, DoesNotDependOnTheScalesOfRowsAndColumns) {
  const std::unique_ptr<Device> device = host::MakeDevice({});
  JobRunner runner(*device);
  const int64_t n = 20;
  HostMatrix a = RandomMatrix(n, n, 5);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i)
      a[i + j * n] *= std::ldexp(1.0, static_cast<int>(10 * j - 5 * i));
  }
  SolveRequest solve;
  solve.error_bound = true;
  for (const EquilibrateMode mode : {EquilibrateMode::kOff, EquilibrateMode::kOn}) {
    FactorRequest request;
    request.equilibrate = mode;
    ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.Factor(a, n, request));
    for (const Op op : {Op::kNone, Op::kTranspose}) {
      solve.op = op;
      ASSERT_OK_AND_ASSIGN(const Solution solution,
                           runner.Solve(factor, RandomMatrix(n, 1, 6), 1, solve));
      EXPECT_TRUE(std::isfinite(*solution.summary.forward_error_bound));
    }
  }
}

}  // namespace
}  // namespace crout::testing::error_bound_test
