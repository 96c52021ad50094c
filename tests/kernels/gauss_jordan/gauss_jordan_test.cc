// SPDX-License-Identifier: Apache-2.0

// Tests Gauss-Jordan elimination on the host in every type: solutions, inverses and singular
// matrices.
#include "kernels/host/device/host_device.h"
#include "kernels/util/sanitizers.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/method_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::gauss_jordan_test {
namespace {

class GaussJordanTest : public ::testing::TestWithParam<DType> {
 protected:
  absl::StatusOr<DirectSolution> Solve(
      const ComplexMatrix& a, int64_t n, const ComplexMatrix& b, int64_t nrhs,
      StopRequested stop = [] { return false; }) {
    return runner_.SolveDirectly(a, n, b, nrhs, dtype_, stop);
  }

  // Returns right-hand sides that are exact in the type of the test.
  ComplexMatrix RightHandSides(int64_t n, int64_t nrhs) const {
    return Rounded(
        IsComplex(dtype_) ? RandomComplex(n, nrhs, 3) : AsComplex(RandomMatrix(n, nrhs, 3)),
        dtype_);
  }

  const DType dtype_ = GetParam();
  const std::unique_ptr<Device> device_ = host::MakeDevice({});
  MethodRunner runner_{*device_};
};

TEST_P(GaussJordanTest, SolvesHandComputedSystem) {
  // [0 2; 4 0] X = [2 4; 8 12]: X = [2 3; 1 2].
  ASSERT_OK_AND_ASSIGN(DirectSolution solution, Solve({0, 4, 2, 0}, 2, {2, 8, 4, 12}, 2));
  EXPECT_EQ(solution.x, (ComplexMatrix{2, 1, 3, 2}));
  EXPECT_EQ(solution.info, 0);
  EXPECT_EQ(solution.ipiv, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(solution.min_pivot, 2);
  EXPECT_EQ(solution.max_pivot, 4);
  ASSERT_OK_AND_ASSIGN(solution, Solve({0, 4, 2, 0}, 2, AsComplex(Identity(2)), 2));
  EXPECT_EQ(solution.x, (ComplexMatrix{0, 0.5, 0.25, 0}));
  if (!IsComplex(dtype_)) return;
  const std::complex<double> i{0, 1};
  ASSERT_OK_AND_ASSIGN(solution, Solve({0, 4.0 * i, 2, 0}, 2, {2, 8, 4.0 * i, 12}, 2));
  EXPECT_EQ(solution.x, (ComplexMatrix{-2.0 * i, 1, -3.0 * i, 2.0 * i}));
}

TEST_P(GaussJordanTest, SolvesTheGallery) {
  std::vector<std::string> names = {
      "random", "diagonally_dominant", "upper_triangular", "lower_triangular",
      "shift",  "near_underflow",      "near_overflow"};
  if (IsComplex(dtype_)) names.insert(names.end(), {"complex_random", "helmholtz"});
  for (const std::string& name : names) {
    for (const int64_t n : {0, 1, 2, 3, 5, 10, 31, 33, 63, 64, 65, 129, 257}) {
      SCOPED_TRACE(name + " " + std::to_string(n));
      const ComplexMatrix a = GalleryMatrix(name, n, dtype_);
      for (const int64_t nrhs : {0, 1, 7, 130}) {
        const ComplexMatrix x_true = RightHandSides(n, nrhs);
        const ComplexMatrix b = Rounded(Multiply(a, n, Op::kNone, x_true, nrhs), dtype_);
        ASSERT_OK_AND_ASSIGN(const DirectSolution solution, Solve(a, n, b, nrhs));
        EXPECT_EQ(solution.info, 0);
        EXPECT_LT(SolveRatio(a, n, Op::kNone, solution.x, b, nrhs, dtype_), kThreshold);
      }
    }
  }
}

TEST_P(GaussJordanTest, Inverts) {
  const int64_t n = kSanitized ? 300 : 1050;  // uses all cores
  const ComplexMatrix a = GalleryMatrix("diagonally_dominant", n, dtype_);
  ASSERT_OK_AND_ASSIGN(const DirectSolution inverse, Solve(a, n, AsComplex(Identity(n)), n));
  // Checks only a few columns, because computing the residuals of all columns takes long.
  const int64_t last = n - 3;
  ComplexMatrix x(inverse.x.begin() + last * n, inverse.x.end());
  ComplexMatrix i = AsComplex(Identity(n));
  i.erase(i.begin(), i.begin() + last * n);
  EXPECT_LT(SolveRatio(a, n, Op::kNone, x, i, 3, dtype_), kThreshold);
  x.assign(inverse.x.begin(), inverse.x.begin() + 3 * n);
  i = AsComplex(Identity(n));
  i.resize(3 * n);
  EXPECT_LT(SolveRatio(a, n, Op::kNone, x, i, 3, dtype_), kThreshold);
}

TEST_P(GaussJordanTest, ReportsColumnWithoutPivot) {
  for (const char* name : {"zero", "zero_first_column", "zero_half_columns", "zero_last_column"}) {
    for (const int64_t n : {1, 10, 129}) {
      ASSERT_OK_AND_ASSIGN(const DirectSolution solution,
                           Solve(GalleryMatrix(name, n, dtype_), n, RightHandSides(n, 2), 2));
      EXPECT_EQ(solution.info, GalleryNamed(name).singular_at(n));
    }
  }
}

TEST_P(GaussJordanTest, StopsWithinABlock) {
  const ComplexMatrix a = GalleryMatrix("random", 200, dtype_);
  int polls = 0;
  EXPECT_THAT(Solve(a, 200, AsComplex(Identity(200)), 200, [&] { return ++polls >= 3; }),
              FailsWith(absl::StatusCode::kCancelled, "stopped"));
  EXPECT_EQ(polls, 6) << "before the first block, in its four stripes, before the second";
}

TEST_P(GaussJordanTest, RefusesMismatchedShapes) {
  std::vector<std::complex<double>> memory(100);
  auto* data = reinterpret_cast<std::byte*>(memory.data());
  const DirectSolver& solver = *device_->direct_solvers().front();
  EXPECT_EQ(solver.name(), "gauss_jordan");
  EXPECT_THAT(solver.Solve(runner_.context(), {data, dtype_, 3, 3, 3}, {data, dtype_, 2, 1, 2}, {},
                           [] { return false; }),
              FailsWith(absl::StatusCode::kInvalidArgument, "3 x 3"));
  EXPECT_LT(solver.PredictSeconds(dtype_, 100, 1), solver.PredictSeconds(dtype_, 1000, 1));
}

INSTANTIATE_TEST_SUITE_P(Types, GaussJordanTest,
                         ::testing::Values(DType::kFloat32, DType::kFloat64, DType::kComplex64,
                                           DType::kComplex128),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

}  // namespace
}  // namespace crout::testing::gauss_jordan_test
