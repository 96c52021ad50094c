// The iterative triangular solver: tolerance, the fixed point, and NaN that never converges.
#include <cmath>

#include "kernels/host/device/host_device.h"
#include "kernels/host/solve/solvers.h"
#include "tests/support/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing {
namespace {

class IterativeSolverTest : public ::testing::Test {
 protected:
  // X with the factor `lu` (float64, unit diagonal in L, no exchanges).
  HostMatrix Solve(HostMatrix lu, int64_t n, Op op, HostMatrix b, double tolerance) {
    const auto solver = host::MakeIs(executor_);
    std::vector<int64_t> ipiv(n);
    for (int64_t i = 0; i < n; ++i) ipiv[i] = i + 1;
    std::vector<std::byte> workspace(*solver->WorkspaceBytes(DType::kFloat64, n, 1));
    const int64_t nrhs = static_cast<int64_t>(b.size()) / n;
    const FactorView factor{AsAny({lu.data(), n, n, n}), ipiv.data(), UnitDiagonal::kL};
    EXPECT_OK(solver->Solve(runner_.context(), factor, op, tolerance, AsAny({b.data(), n, nrhs, n}),
                            workspace));
    return b;
  }

  host::Executor executor_{2};
  const std::unique_ptr<Device> device_ = host::MakeDevice({});
  JobRunner runner_{*device_};
};

TEST_F(IterativeSolverTest, ByHand) {
  // [1 0; 2 1] [2 1; 0 3] x = [4; 14] and [6; 9]: x = [1; 2], and transposed.
  const HostMatrix lu = {2, 2, 1, 3};
  EXPECT_EQ(Solve(lu, 2, Op::kNone, {4, 14}, 0), (HostMatrix{1, 2}));
  EXPECT_EQ(Solve(lu, 2, Op::kTranspose, {10, 11}, 0), (HostMatrix{1, 2}));
}

TEST_F(IterativeSolverTest, AToleranceSavesAccuracy) {
  const int64_t n = 100;
  const HostMatrix lu = GalleryNamed("diagonally_dominant").make(n);
  const HostMatrix b = RandomMatrix(n, 3, 1);
  // L's diagonal is one, of this matrix n: scale it down.
  HostMatrix tame = lu;
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = j + 1; i < n; ++i) tame[i + j * n] /= static_cast<double>(n);
  }
  const HostMatrix exact = Solve(tame, n, Op::kNone, b, 0);
  const HostMatrix rough = Solve(tame, n, Op::kNone, b, 1e-3);
  double worst = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    worst = std::max(worst, std::abs(rough[i] - exact[i]) / std::abs(exact[i]));
  }
  EXPECT_GT(worst, 1e-12);
  EXPECT_LT(worst, 1e-1);
}

TEST_F(IterativeSolverTest, NanIsDeliveredNotAccepted) {
  for (const double wrong : {double{NAN}, double{INFINITY}}) {
    // In column 0 of L, row 2.
    const HostMatrix lu = {1, 0.5, wrong, 0, 1, 0.5, 0, 0, 1};
    const HostMatrix x = Solve(lu, 3, Op::kNone, {1, 1, 1}, 0.5);
    EXPECT_FALSE(std::isfinite(x[2]));
  }
}

TEST_F(IterativeSolverTest, ALateChangeIsNotMissed) {
  // A chain of n steps whose last element changes in the last sweep alone.
  const int64_t n = 50;
  HostMatrix lu(n * n, 0.0);
  for (int64_t i = 0; i < n; ++i) lu[i + i * n] = 1;
  for (int64_t i = 0; i + 1 < n; ++i) lu[i + 1 + i * n] = -1;
  HostMatrix b(n, 0.0);
  b[0] = 1;
  EXPECT_EQ(Solve(lu, n, Op::kNone, b, 0), HostMatrix(n, 1.0));
}

}  // namespace
}  // namespace crout::testing
