// SPDX-License-Identifier: Apache-2.0

// Tests the iterative triangular solver in every type: the tolerance, the fixed point, and that NaN
// does not count as converged.
#include <algorithm>
#include <cmath>
#include <complex>

#include "kernels/host/device/host_device.h"
#include "tests/support/runners/method_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::iterative_solver_test {
namespace {

using Complex = std::complex<double>;

class IterativeSolverTest : public ::testing::TestWithParam<DType> {
 protected:
  // Returns X for the factor `lu`, which has the unit diagonal in L and no interchanges.
  ComplexMatrix Solve(const ComplexMatrix& lu, int64_t n, Op op, const ComplexMatrix& b,
                      double tolerance) {
    MethodFactor factor;
    factor.n = n;
    factor.dtype = dtype_;
    factor.packed = Packed(lu, n, n, dtype_);
    for (int64_t i = 0; i < n; ++i) factor.ipiv.push_back(i + 1);
    const auto nrhs = static_cast<int64_t>(b.size()) / n;
    const auto x = runner_.Solve("is", factor, op, b, nrhs, tolerance);
    EXPECT_OK(x);
    return x.ok() ? *x : ComplexMatrix(b.size());
  }

  const DType dtype_ = GetParam();
  const std::unique_ptr<Device> device_ = host::MakeDevice({.threads = 2});
  MethodRunner runner_{*device_};
};

TEST_P(IterativeSolverTest, SolvesHandComputedSystem) {
  // x = [1; 2] solves [1 0; 2 1] [2 1; 0 3] x = [4; 14] and the transposed system with [10; 11].
  const ComplexMatrix lu = {2, 2, 1, 3};
  EXPECT_EQ(Solve(lu, 2, Op::kNone, {4, 14}, 0), (ComplexMatrix{1, 2}));
  EXPECT_EQ(Solve(lu, 2, Op::kTranspose, {10, 11}, 0), (ComplexMatrix{1, 2}));
  EXPECT_EQ(Solve(lu, 2, Op::kConjugateTranspose, {10, 11}, 0), (ComplexMatrix{1, 2}));
}

TEST_P(IterativeSolverTest, SolvesHandComputedComplexSystem) {
  if (!IsComplex(dtype_)) GTEST_SKIP() << "a real type";
  // The factors are [1 0; i 1] and [2 i; 0 3i], and the solution is [1; i].
  const Complex i{0, 1};
  const ComplexMatrix lu = {2, i, i, 3.0 * i};
  EXPECT_EQ(Solve(lu, 2, Op::kNone, {1, -3.0 + i}, 0), (ComplexMatrix{1, i}));
  EXPECT_EQ(Solve(lu, 2, Op::kTranspose, {0, -3}, 0), (ComplexMatrix{1, i}));
  EXPECT_EQ(Solve(lu, 2, Op::kConjugateTranspose, {4, 3.0 - 2.0 * i}, 0), (ComplexMatrix{1, i}));
}

TEST_P(IterativeSolverTest, StopsEarlyWithTolerance) {
  const int64_t n = 100;
  // Divides the strictly lower part by n: the diagonal of this matrix is n, but that of L is 1.
  ComplexMatrix tame = GalleryMatrix("diagonally_dominant", n, dtype_);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = j + 1; i < n; ++i) tame[i + j * n] /= static_cast<double>(n);
  }
  const ComplexMatrix b = AsComplex(RandomMatrix(n, 3, 1));
  for (const Op op : {Op::kNone, Op::kConjugateTranspose}) {
    const ComplexMatrix exact = Solve(tame, n, op, b, 0);
    const ComplexMatrix rough = Solve(tame, n, op, b, 1e-3);
    double worst = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
      worst = std::max(worst, std::abs(rough[i] - exact[i]) / std::abs(exact[i]));
    }
    EXPECT_GT(worst, 8 * UnitRoundoff(dtype_));
    EXPECT_LT(worst, 1e-1);
  }
}

TEST_P(IterativeSolverTest, ReturnsNanInsteadOfConverging) {
  std::vector<Complex> wrong = {NAN, INFINITY};
  if (IsComplex(dtype_)) wrong.insert(wrong.end(), {Complex{0, NAN}, Complex{0, INFINITY}});
  for (const Complex bad : wrong) {
    // The bad element is in row 2 and column 0 of L.
    const ComplexMatrix lu = {1, 0.5, bad, 0, 1, 0.5, 0, 0, 1};
    const Complex x = Solve(lu, 3, Op::kNone, {1, 1, 1}, 0.5)[2];
    EXPECT_FALSE(std::isfinite(x.real()) && std::isfinite(x.imag())) << bad;
  }
}

TEST_P(IterativeSolverTest, ContinuesUntilTheLastElementIsFinal) {
  // Each element depends on the previous one, so that the last changes only in the last sweep.
  const int64_t n = 50;
  ComplexMatrix lu(n * n);
  for (int64_t i = 0; i < n; ++i) lu[i + i * n] = 1;
  for (int64_t i = 0; i + 1 < n; ++i) lu[i + 1 + i * n] = -1;
  ComplexMatrix b(n);
  b[0] = 1;
  EXPECT_EQ(Solve(lu, n, Op::kNone, b, 0), ComplexMatrix(n, 1.0));
}

INSTANTIATE_TEST_SUITE_P(Types, IterativeSolverTest,
                         ::testing::Values(DType::kFloat32, DType::kFloat64, DType::kComplex64,
                                           DType::kComplex128),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

}  // namespace
}  // namespace crout::testing::iterative_solver_test
