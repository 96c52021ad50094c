// GET07: the forward error bound holds, and is not idle.
#include "kernels/host/host_device.h"
#include "tests/support/job_runner.h"
#include "tests/support/ratios.h"
#include "tests/support/status_matchers.h"

namespace crout::testing {
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

TEST_P(ErrorBoundTest, Holds) {
  const Case& c = GetParam();
  const std::unique_ptr<Device> device = MakeHostDevice({});
  JobRunner runner(*device);
  for (const int64_t n : {1, 2, 10, 50}) {
    // Integers, so that b is exact and the true solution known.
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

}  // namespace
}  // namespace crout::testing
