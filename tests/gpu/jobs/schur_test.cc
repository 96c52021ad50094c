// SPDX-License-Identifier: Apache-2.0

// Tests Schur complements and solves without factors on the GPU.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "kernels/jobs/direct_solve.h"
#include "kernels/jobs/factorize.h"
#include "kernels/jobs/schur.h"
#include "tests/gpu/harness/jobs.h"
#include "tests/support/ratios.h"

namespace crout::schur_test {
namespace {

using ::crout::testing::Packed;
using ::crout::testing::RandomMatrix;
using ::crout::testing::Rounded;
using ::crout::testing::Unpacked;

bool Never() { return false; }

class GpuSchurTest : public GpuAndHostTest {};

// Returns the Schur complement S of the leading block of order k, computed by getrf and trsm.
absl::StatusOr<HostMatrix> SchurOn(Bench& bench, const HostMatrix& a, int64_t n, int64_t k,
                                   DType dtype, Layout layout, EquilibrateMode equilibrate) {
  SchurOptions options;
  options.factor = OptionsOf(bench.device(), dtype);
  options.factor.equilibrate = equilibrate;
  options.solver = SolverOf(bench.device(), "trsm");
  options.leading = k;
  options.layout = layout;
  Buffer upload = bench.Put(Packed(a, n, n, dtype, layout));
  const auto plan = PlanSchur(options, {nullptr, dtype, layout, n, n});
  if (!plan.ok()) return plan.status();
  const PackedMatrix& s = plan->complement;
  std::vector<std::byte> out(s.bytes());
  KernelTimings timings;
  const auto result =
      ComputeSchurComplement(bench.context(), *plan, std::move(upload), out.data(), Never, timings);
  if (!result.ok()) return result.status();
  EXPECT_EQ(result->factor.summary.info, 0);
  EXPECT_EQ(result->complement.has_value(), k < n);
  if (k < n) {
    EXPECT_FALSE(result->complement->is_poor) << result->complement->backward_error;
    EXPECT_LT(result->complement->growth, 10);
  }
  return Unpacked(out.data(), s);
}

TEST_F(GpuSchurTest, MatchesTheHostsComplements) {
  for (const int64_t n : {1, 2, 33, 257, 600}) {
    HostMatrix a = RandomMatrix(n, n, 1);
    // S of a diagonally dominant matrix is well-conditioned, also in float32.
    for (int64_t i = 0; i < n; ++i) a[i * (n + 1)] += static_cast<double>(n);
    for (const int64_t k : {int64_t{0}, n / 3, n - 1, n}) {
      for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
        for (const Layout layout : {Layout::kColumnMajor, Layout::kRowMajor}) {
          const auto mode = k % 2 == 0 ? EquilibrateMode::kOff : EquilibrateMode::kOn;
          SCOPED_TRACE(::testing::Message() << n << " " << k << " " << NameOf(dtype));
          const auto on_gpu = SchurOn(*gpu_, a, n, k, dtype, layout, mode);
          const auto on_host = SchurOn(*host_, a, n, k, dtype, layout, mode);
          ASSERT_TRUE(on_gpu.ok()) << on_gpu.status();
          ASSERT_TRUE(on_host.ok()) << on_host.status();
          const double bound = 100 * static_cast<double>(n) * UnitRoundoff(dtype);
          for (size_t i = 0; i < on_host->size(); ++i) {
            EXPECT_NEAR((*on_gpu)[i], (*on_host)[i], bound);
          }
        }
      }
    }
  }
}

// Tests SolveDirectly with every direct solver of the GPU.
TEST_F(GpuSchurTest, SolvesWithEveryDirectSolver) {
  constexpr int64_t kN = 100;
  constexpr int64_t kNrhs = 5;
  for (const auto& solver : Gpu().direct_solvers()) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      for (const Layout layout : {Layout::kColumnMajor, Layout::kRowMajor}) {
        const HostMatrix a = Rounded(RandomMatrix(kN, kN, 1), dtype);
        const HostMatrix b = Rounded(RandomMatrix(kN, kNrhs, 2), dtype);
        const PackedMatrix matrix{nullptr, dtype, layout, kN, kN};
        const PackedMatrix rhs{nullptr, dtype, layout, kN, kNrhs};
        std::vector<std::byte> out(rhs.bytes());
        KernelTimings timings;
        const auto summary =
            SolveDirectly(gpu_->context(), gpu_->Put(Packed(a, kN, kN, dtype, layout)), matrix,
                          gpu_->Put(Packed(b, kN, kNrhs, dtype, layout)), rhs,
                          {solver.get(), dtype, true}, out.data(), Never, timings);
        ASSERT_TRUE(summary.ok()) << solver->name() << ": " << summary.status();
        const HostMatrix x = Unpacked(out.data(), rhs);
        EXPECT_LT(testing::SolveRatio(a, kN, Op::kNone, x, b, kNrhs, dtype), testing::kThreshold);
        const double expected = testing::BackwardError(a, kN, Op::kNone, x, b, kNrhs);
        EXPECT_NEAR(*summary->backward_error, expected, 0x1p-53 * (kN + 1));
      }
    }
  }
}

}  // namespace
}  // namespace crout::schur_test
