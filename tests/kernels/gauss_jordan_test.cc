// Gauss-Jordan on the host: solutions, inverses and singular matrices.
#include <cstring>

#include "kernels/host/device/host_device.h"
#include "tests/support/job_runner.h"
#include "tests/support/ratios.h"
#include "tests/support/sanitizers.h"
#include "tests/support/status_matchers.h"

namespace crout::testing {
namespace {

class GaussJordanTest : public ::testing::TestWithParam<DType> {
 protected:
  // X, with info in info_.
  absl::StatusOr<HostMatrix> Solve(const HostMatrix& a, int64_t n, const HostMatrix& b,
                                   int64_t nrhs, StopRequested stop = JobRunner::NeverStop()) {
    const DirectSolver& solver = *device_->direct_solvers().front();
    std::vector<std::byte> lhs = Packed(a, n, n, GetParam());
    std::vector<std::byte> rhs = Packed(b, n, nrhs, GetParam());
    std::vector<std::byte> workspace(*solver.WorkspaceBytes(GetParam(), n, nrhs));
    const int64_t ld = std::max<int64_t>(1, n);
    const absl::Status status =
        solver.Solve(runner_.context(), {lhs.data(), GetParam(), n, n, ld},
                     {rhs.data(), GetParam(), n, nrhs, ld}, workspace, stop);
    if (!status.ok()) return status;
    info_ = runner_.context().report().info;
    return Unpacked(rhs.data(), {nullptr, GetParam(), Layout::kColumnMajor, n, nrhs});
  }

  const std::unique_ptr<Device> device_ = host::MakeDevice({});
  JobRunner runner_{*device_};
  int32_t info_ = -1;
};

HostMatrix Identity(int64_t n) {
  HostMatrix i(n * n, 0.0);
  for (int64_t k = 0; k < n; ++k) i[k + k * n] = 1;
  return i;
}

TEST_P(GaussJordanTest, ByHand) {
  // [0 2; 4 0] X = [2 4; 8 12]: X = [2 3; 1 2].
  ASSERT_OK_AND_ASSIGN(HostMatrix x, Solve({0, 4, 2, 0}, 2, {2, 8, 4, 12}, 2));
  EXPECT_EQ(x, (HostMatrix{2, 1, 3, 2}));
  EXPECT_EQ(info_, 0);
  ASSERT_OK_AND_ASSIGN(x, Solve({0, 4, 2, 0}, 2, Identity(2), 2));
  EXPECT_EQ(x, (HostMatrix{0, 0.5, 0.25, 0}));
}

TEST_P(GaussJordanTest, SolvesTheGallery) {
  for (const char* name : {"random", "diagonally_dominant", "upper_triangular", "lower_triangular",
                           "shift", "near_underflow", "near_overflow"}) {
    for (const int64_t n : {0, 1, 2, 3, 5, 10, 31, 33, 63, 64, 65, 129, 257}) {
      SCOPED_TRACE(std::string(name) + " " + std::to_string(n));
      const HostMatrix a = Rounded(GalleryNamed(name).make(n), GetParam());
      for (const int64_t nrhs : {0, 1, 7, 130}) {
        const HostMatrix x_true = RandomMatrix(n, nrhs, 3);
        const HostMatrix b = Rounded(Multiply(a, n, Op::kNone, x_true, nrhs), GetParam());
        ASSERT_OK_AND_ASSIGN(const HostMatrix x, Solve(a, n, b, nrhs));
        EXPECT_EQ(info_, 0);
        EXPECT_LT(SolveRatio(a, n, Op::kNone, x, b, nrhs, GetParam()), kThreshold);
      }
    }
  }
}

TEST_P(GaussJordanTest, Inverts) {
  const int64_t n = kSanitized ? 300 : 1050;  // wide
  const HostMatrix a = Rounded(GalleryNamed("diagonally_dominant").make(n), GetParam());
  ASSERT_OK_AND_ASSIGN(const HostMatrix x, Solve(a, n, Identity(n), n));
  EXPECT_LT(SolveRatio(a, n, Op::kNone, x, Identity(n), n, GetParam()), kThreshold);
}

TEST_P(GaussJordanTest, NamesTheColumnWithoutAPivot) {
  for (const char* name : {"zero", "zero_first_column", "zero_half_columns", "zero_last_column"}) {
    const GalleryKind& kind = GalleryNamed(name);
    for (const int64_t n : {1, 10, 129}) {
      ASSERT_OK(Solve(kind.make(n), n, RandomMatrix(n, 2, 1), 2));
      EXPECT_EQ(info_, kind.singular_at(n));
    }
  }
}

TEST_P(GaussJordanTest, StopsBetweenBlocks) {
  const HostMatrix a = RandomMatrix(200, 200, 1);
  int asked = 0;
  EXPECT_THAT(Solve(a, 200, Identity(200), 200, [&] { return ++asked == 3; }),
              FailsWith(absl::StatusCode::kCancelled, "stopped"));
  EXPECT_EQ(asked, 3);
}

TEST_P(GaussJordanTest, ShapesMustAgree) {
  std::vector<double> memory(100);
  auto* data = reinterpret_cast<std::byte*>(memory.data());
  const DirectSolver& solver = *device_->direct_solvers().front();
  EXPECT_EQ(solver.name(), "gauss_jordan");
  EXPECT_THAT(solver.Solve(runner_.context(), {data, GetParam(), 3, 3, 3},
                           {data, GetParam(), 2, 1, 2}, {}, JobRunner::NeverStop()),
              FailsWith(absl::StatusCode::kInvalidArgument, "3 x 3"));
  EXPECT_LT(solver.PredictSeconds(GetParam(), 100, 1), solver.PredictSeconds(GetParam(), 1000, 1));
}

INSTANTIATE_TEST_SUITE_P(Types, GaussJordanTest,
                         ::testing::Values(DType::kFloat32, DType::kFloat64),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

}  // namespace
}  // namespace crout::testing
