// SPDX-License-Identifier: Apache-2.0

// Tests Gauss-Jordan elimination on the GPU with the residuals of its solutions.
#include <cmath>
#include <string>

#include "kernels/direct_solver.h"
#include "tests/gpu/harness/jobs.h"
#include "tests/support/ratios.h"

namespace crout::gauss_jordan_test {
namespace {

using ::crout::testing::GalleryNamed;
using ::crout::testing::kThreshold;
using ::crout::testing::RandomMatrix;
using ::crout::testing::Rounded;
using ::crout::testing::SolveRatio;

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64};

class GaussJordanTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped()) gpu_ = std::make_unique<Bench>(Gpu());
  }

  struct Result {
    absl::Status status;
    int info = 0;
    HostMatrix x;
  };

  Result Solve(
      const HostMatrix& a, int64_t n, const HostMatrix& b, int64_t nrhs, DType dtype,
      StopRequested stop = [] { return false; }) {
    return DispatchReal(dtype, [&](auto tag) {
      return SolveAs<typename decltype(tag)::type>(a, n, b, nrhs, stop);
    });
  }

  void Check(const std::string& kind, int64_t n, int64_t nrhs, DType dtype) {
    SCOPED_TRACE(::testing::Message()
                 << kind << " n=" << n << " nrhs=" << nrhs << " " << NameOf(dtype));
    const HostMatrix a = Rounded(GalleryNamed(kind).make(n), dtype);
    const HostMatrix b = Rounded(RandomMatrix(n, nrhs, 5), dtype);
    const Result result = Solve(a, n, b, nrhs, dtype);
    ASSERT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(result.info, 0);
    EXPECT_LT(SolveRatio(a, n, Op::kNone, result.x, b, nrhs, dtype), kThreshold);
  }

  std::unique_ptr<Bench> gpu_;

 private:
  template <class T>
  Result SolveAs(const HostMatrix& a, int64_t n, const HostMatrix& b, int64_t nrhs,
                 StopRequested stop) {
    const DirectSolver& solver = *Gpu().direct_solvers().front();
    EXPECT_EQ(solver.name(), "gauss_jordan");
    const Buffer matrix = gpu_->Put(std::vector<T>(a.begin(), a.end()));
    const Buffer rhs = gpu_->Put(std::vector<T>(b.begin(), b.end()));
    auto bytes = solver.WorkspaceBytes(kDTypeOf<T>, n, nrhs);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    const Buffer workspace = gpu_->Allocate(*bytes);
    const int64_t ld = std::max<int64_t>(1, n);
    Result result;
    result.status = solver.Solve(gpu_->context(), {matrix.data(), kDTypeOf<T>, n, n, ld},
                                 {rhs.data(), kDTypeOf<T>, n, nrhs, ld},
                                 {workspace.data(), workspace.size()}, stop);
    result.info = gpu_->Wait().info;
    const std::vector<T> x = gpu_->Get<T>(rhs);
    result.x.assign(x.begin(), x.end());
    return result;
  }
};

TEST_F(GaussJordanTest, SolvesEverySize) {
  for (const char* kind : {"random", "diagonally_dominant", "shift", "graded", "near_overflow"}) {
    for (const int64_t n : {1, 2, 3, 5, 31, 32, 33, 255, 256, 257, 558}) {
      for (const DType dtype : kTypes) Check(kind, n, 3, dtype);
    }
  }
}

TEST_F(GaussJordanTest, SolvesForEveryNumberOfRightHandSides) {
  for (const DType dtype : kTypes) {
    for (const int64_t nrhs : {0, 1, 3, 65}) {
      Check("random", 257, nrhs, dtype);
      Check("random", 1089, nrhs, dtype);
    }
    const Result empty = Solve({}, 0, {}, 0, dtype);
    EXPECT_TRUE(empty.status.ok()) << empty.status;
    EXPECT_EQ(empty.info, 0);
  }
}

TEST_F(GaussJordanTest, InvertsMatricesWithKnownInverses) {
  for (const DType dtype : kTypes) {
    for (const int64_t n : {3, 33, 300, 1089}) {
      SCOPED_TRACE(n);
      // The inverse of a permutation is its transpose, without rounding.
      const HostMatrix shift = GalleryNamed("shift").make(n);
      const Result transposed = Solve(shift, n, testing::Identity(n), n, dtype);
      EXPECT_EQ(transposed.x, testing::Transposed(shift, n, n));
      // A matrix of ones on and below the diagonal has an inverse with 1 on the diagonal and -1
      // directly below it.
      HostMatrix steps(n * n, 0.0);
      HostMatrix differences(n * n, 0.0);
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t i = j; i < n; ++i) steps[i + j * n] = 1;
        differences[j + j * n] = 1;
        if (j + 1 < n) differences[j + 1 + j * n] = -1;
      }
      EXPECT_EQ(Solve(steps, n, testing::Identity(n), n, dtype).x, differences);
      // Other inverses have rounding errors.
      const HostMatrix a = Rounded(GalleryNamed("diagonally_dominant").make(n), dtype);
      const Result inverse = Solve(a, n, testing::Identity(n), n, dtype);
      EXPECT_LT(SolveRatio(a, n, Op::kNone, inverse.x, testing::Identity(n), n, dtype), kThreshold);
    }
  }
}

TEST_F(GaussJordanTest, ReportsColumnWithoutPivot) {
  for (const int64_t n : {1, 5, 33, 257, 600}) {
    for (const char* kind :
         {"zero", "zero_first_column", "zero_last_column", "zero_half_columns"}) {
      for (const DType dtype : kTypes) {
        SCOPED_TRACE(::testing::Message() << kind << " " << n << " " << NameOf(dtype));
        const Result result = Solve(GalleryNamed(kind).make(n), n, RandomMatrix(n, 2, 1), 2, dtype);
        ASSERT_TRUE(result.status.ok()) << result.status;
        EXPECT_EQ(result.info, GalleryNamed(kind).singular_at(n));
      }
    }
  }
}

TEST_F(GaussJordanTest, GivesTheSameBitsTwice) {
  constexpr int64_t kN = 700;
  const HostMatrix a = GalleryNamed("random").make(kN);
  const HostMatrix b = RandomMatrix(kN, 65, 2);
  EXPECT_TRUE(
      SameBits(Solve(a, kN, b, 65, DType::kFloat64).x, Solve(a, kN, b, 65, DType::kFloat64).x));
}

TEST_F(GaussJordanTest, StopsBetweenPanels) {
  constexpr int64_t kN = 2000;
  const HostMatrix a = RandomMatrix(kN, kN, 1);
  for (const int allowed : {0, 5, 40}) {
    int polls = 0;
    const Result result =
        Solve(a, kN, RandomMatrix(kN, 3, 2), 3, DType::kFloat64, [&] { return ++polls > allowed; });
    EXPECT_EQ(result.status.code(), absl::StatusCode::kCancelled) << result.status;
  }
  Check("random", 257, 3, DType::kFloat64);
}

TEST_F(GaussJordanTest, RatioRejectsAPerturbedSolution) {
  constexpr int64_t kN = 100;
  const HostMatrix a = GalleryNamed("random").make(kN);
  const HostMatrix b = RandomMatrix(kN, 1, 5);
  HostMatrix x = Solve(a, kN, b, 1, DType::kFloat64).x;
  x[kN / 2] *= 1 + 1e-9;
  EXPECT_GT(SolveRatio(a, kN, Op::kNone, x, b, 1, DType::kFloat64), kThreshold);
}

}  // namespace
}  // namespace crout::gauss_jordan_test
