// SPDX-License-Identifier: Apache-2.0

// Tests iterative refinement: with a float32 factor of a float64 matrix, the backward error reaches
// the roundoff of float64.
#include "kernels/host/device/host_device.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::refinement_test {
namespace {

class RefinementTest : public ::testing::TestWithParam<const char*> {
 protected:
  absl::StatusOr<Factorization> Factor(const HostMatrix& a, int64_t n) {
    FactorRequest request;
    request.algorithm = GetParam();
    request.factor_dtype = DType::kFloat32;
    return runner_.Factor(a, n, request);
  }

  const std::unique_ptr<Device> device_ = host::MakeDevice({});
  JobRunner runner_{*device_};
};

TEST_P(RefinementTest, ReachesFloat64FromAFloat32Factor) {
  for (const int64_t n : {1, 10, 129}) {
    const HostMatrix a = WithCondition(n, 1e4, 3);
    ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(a, n));
    for (const Op op : {Op::kNone, Op::kTranspose}) {
      const HostMatrix b = RandomMatrix(n, 3, 5);
      SolveRequest solve;
      solve.op = op;
      ASSERT_OK_AND_ASSIGN(const Solution plain, runner_.Solve(factor, b, 3, solve));
      EXPECT_EQ(plain.summary.refinement_steps, 0);
      if (n > 1) {
        EXPECT_GT(*plain.summary.backward_error, 1e-10);
      }
      solve.max_refinement_steps = 20;
      ASSERT_OK_AND_ASSIGN(const Solution refined, runner_.Solve(factor, b, 3, solve));
      EXPECT_LT(*refined.summary.backward_error, 4 * 0x1p-53);
      EXPECT_LT(BackwardError(a, n, op, refined.x, b, 3), 4 * 0x1p-53);
      if (n > 1) {
        EXPECT_GE(refined.summary.refinement_steps, 1);
      }
      EXPECT_LE(refined.summary.refinement_steps, 6);  // stops before the limit
    }
  }
}

TEST_P(RefinementTest, RespectsStepLimit) {
  const HostMatrix a = WithCondition(50, 1e4, 3);
  ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(a, 50));
  SolveRequest solve;
  solve.max_refinement_steps = 1;
  ASSERT_OK_AND_ASSIGN(const Solution once,
                       runner_.Solve(factor, RandomMatrix(50, 1, 5), 1, solve));
  EXPECT_EQ(once.summary.refinement_steps, 1);
}

TEST_P(RefinementTest, NeverIncreasesTheError) {
  // Too ill-conditioned for a float32 factor: refinement stagnates or diverges.
  const int64_t n = 50;
  const HostMatrix a = WithCondition(n, 1e12, 3);
  ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(a, n));
  const HostMatrix b = RandomMatrix(n, 1, 5);
  SolveRequest solve;
  ASSERT_OK_AND_ASSIGN(const Solution plain, runner_.Solve(factor, b, 1, solve));
  solve.max_refinement_steps = 20;
  ASSERT_OK_AND_ASSIGN(const Solution refined, runner_.Solve(factor, b, 1, solve));
  EXPECT_LE(*refined.summary.backward_error, *plain.summary.backward_error);
  EXPECT_NEAR(*refined.summary.backward_error, BackwardError(a, n, Op::kNone, refined.x, b, 1),
              1e-3 * *refined.summary.backward_error + 1e-15);
}

TEST_P(RefinementTest, MeasuresTheErrorOfTheDeliveredFloat32Solution) {
  const int64_t n = 30;
  const HostMatrix a = WithCondition(n, 10, 3);
  ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(a, n));
  const HostMatrix b = Rounded(RandomMatrix(n, 2, 5), DType::kFloat32);
  SolveRequest solve;
  solve.dtype = DType::kFloat32;
  solve.max_refinement_steps = 3;
  ASSERT_OK_AND_ASSIGN(const Solution solution, runner_.Solve(factor, b, 2, solve));
  EXPECT_NEAR(*solution.summary.backward_error, BackwardError(a, n, Op::kNone, solution.x, b, 2),
              1e-14);
  EXPECT_GT(*solution.summary.backward_error, 1e-10);  // limited by float32
}

INSTANTIATE_TEST_SUITE_P(All, RefinementTest, ::testing::Values("getrf", "cmpp"));

}  // namespace
}  // namespace crout::testing::refinement_test
