// SPDX-License-Identifier: Apache-2.0

// Tests every algorithm with every solver that supports its factors: GET02, GET04, the reported
// backward error, and that results do not depend on the layout.
#include <optional>
#include <string>
#include <tuple>

#include "kernels/host/device/host_device.h"
#include "kernels/util/sanitizers.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::gallery_solve_test {
namespace {

struct Pair {
  const char* algorithm;
  const char* solver;
};

class GallerySolveTest : public ::testing::TestWithParam<std::tuple<Pair, std::string, DType>> {
 protected:
  void Check(int64_t n);
  // Also checks the forward error if the exact `rcond` is given.
  void CheckSolve(const HostMatrix& a, int64_t n, std::optional<double> rcond,
                  const Factorization& factor, Op op, int64_t nrhs);

  const Pair pair_ = std::get<0>(GetParam());
  const GalleryKind& kind_ = GalleryNamed(std::get<1>(GetParam()));
  const DType dtype_ = std::get<2>(GetParam());
  const std::unique_ptr<Device> device_ = host::MakeDevice({});
  JobRunner runner_{*device_};
};

void GallerySolveTest::CheckSolve(const HostMatrix& a, int64_t n, std::optional<double> rcond,
                                  const Factorization& factor, Op op, int64_t nrhs) {
  SCOPED_TRACE(nrhs);
  const HostMatrix x_true = Rounded(RandomMatrix(n, nrhs, 7), dtype_);
  const HostMatrix b = Rounded(Multiply(a, n, op, x_true, nrhs), dtype_);
  SolveRequest request;
  request.solver = pair_.solver;
  request.dtype = dtype_;
  request.op = op;
  ASSERT_OK_AND_ASSIGN(const Solution solution, runner_.Solve(factor, b, nrhs, request));
  EXPECT_EQ(solution.summary.solver, pair_.solver);
  EXPECT_LT(SolveRatio(a, n, op, solution.x, b, nrhs, dtype_), kThreshold);
  ASSERT_TRUE(solution.summary.backward_error.has_value());
  // The solve computes its residual in float64, the test in long double.
  const double exact = BackwardError(a, n, op, solution.x, b, nrhs);
  EXPECT_NEAR(*solution.summary.backward_error, exact,
              1e-6 * exact + static_cast<double>(n + 2) * 0x1p-53);
  if (rcond) {
    EXPECT_LT(ForwardRatio(solution.x, x_true, n, nrhs, *rcond, dtype_), kThreshold);
  }
}

void GallerySolveTest::Check(int64_t n) {
  SCOPED_TRACE(n);
  const HostMatrix a = Rounded(kind_.make(n), dtype_);
  FactorRequest request;
  request.algorithm = pair_.algorithm;
  request.matrix_dtype = request.factor_dtype = dtype_;
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a, n, request));
  ASSERT_EQ(factor.summary.info, 0);
  std::optional<double> rcond;
  if (n > 0 && n <= 129) rcond = ExactRcond(a, n);
  for (const Op op : {Op::kNone, Op::kTranspose}) {
    for (const int64_t nrhs : {1, 2, 15}) CheckSolve(a, n, rcond, factor, op, nrhs);
  }
}

TEST_P(GallerySolveTest, SolvesEverySize) {
  for (const int64_t n : GallerySizes()) Check(n);
}

std::string TestName(const ::testing::TestParamInfo<GallerySolveTest::ParamType>& info) {
  const Pair pair = std::get<0>(info.param);
  return std::string(pair.algorithm) + "_" + pair.solver + "_" + std::get<1>(info.param) + "_" +
         std::string(NameOf(std::get<2>(info.param)));
}

const auto kPairs =
    ::testing::Values(Pair{"getrf", "getrs"}, Pair{"getrf", "trsm"}, Pair{"getrf", "ss"},
                      Pair{"cmpp", "trsm"}, Pair{"cmpp", "ss"});
// The iterative solver needs as many sweeps as rows, so only small matrices are used.
const auto kAllPairs =
    ::testing::Values(Pair{"getrf", "getrs"}, Pair{"getrf", "trsm"}, Pair{"getrf", "ss"},
                      Pair{"getrf", "is"}, Pair{"gem", "getrs"}, Pair{"cmpp", "trsm"},
                      Pair{"cmpp", "ss"}, Pair{"cmpp", "is"}, Pair{"icmpp", "trsm"});
const auto kDTypes = ::testing::Values(DType::kFloat32, DType::kFloat64);

INSTANTIATE_TEST_SUITE_P(
    All, GallerySolveTest,
    ::testing::Combine(kAllPairs,
                       ::testing::Values("random", "diagonally_dominant", "upper_triangular",
                                         "lower_triangular", "shift", "condition_sqrt",
                                         "near_underflow", "near_overflow"),
                       kDTypes),
    TestName);

class LargeGallerySolveTest : public GallerySolveTest {};

TEST_P(LargeGallerySolveTest, SolvesOrder1000) { Check(kSanitized ? 300 : 1000); }

INSTANTIATE_TEST_SUITE_P(Some, LargeGallerySolveTest,
                         ::testing::Combine(kPairs, ::testing::Values("random"), kDTypes),
                         TestName);

TEST(LayoutTest, RowMajorGivesTheSameBits) {
  const std::unique_ptr<Device> device = host::MakeDevice({});
  JobRunner runner(*device);
  for (const bool keep : {true, false}) {
    for (const DType factor_dtype : {DType::kFloat32, DType::kFloat64}) {
      const int64_t n = 33;
      const HostMatrix a = RandomMatrix(n, n, 5);
      const HostMatrix b = RandomMatrix(n, 3, 6);
      FactorRequest request;
      request.factor_dtype = factor_dtype;
      request.keep_matrix = keep;
      SolveRequest solve;
      solve.verify = keep;
      ASSERT_OK_AND_ASSIGN(const Factorization columns, runner.Factor(a, n, request));
      ASSERT_OK_AND_ASSIGN(const Solution x_columns, runner.Solve(columns, b, 3, solve));
      request.layout = solve.layout = Layout::kRowMajor;
      ASSERT_OK_AND_ASSIGN(const Factorization rows, runner.Factor(a, n, request));
      ASSERT_OK_AND_ASSIGN(const Solution x_rows, runner.Solve(rows, b, 3, solve));
      ASSERT_OK_AND_ASSIGN(const HostFactor lu_columns, runner.Download(columns));
      ASSERT_OK_AND_ASSIGN(const HostFactor lu_rows, runner.Download(rows));
      EXPECT_EQ(lu_columns.lu, lu_rows.lu);
      EXPECT_EQ(lu_columns.ipiv, lu_rows.ipiv);
      EXPECT_EQ(x_columns.x, x_rows.x);
      EXPECT_DOUBLE_EQ(columns.summary.norm_one, rows.summary.norm_one);
      EXPECT_EQ(bool{columns.matrix()}, keep);
    }
  }
}

TEST(DTypeTest, SolvesWithEveryCombinationOfTypes) {
  const std::unique_ptr<Device> device = host::MakeDevice({});
  JobRunner runner(*device);
  const int64_t n = 20;
  const HostMatrix a = Rounded(GalleryNamed("diagonally_dominant").make(n), DType::kFloat32);
  const HostMatrix b = Rounded(RandomMatrix(n, 2, 6), DType::kFloat32);
  for (const DType matrix : {DType::kFloat32, DType::kFloat64}) {
    for (const DType factor : {DType::kFloat32, DType::kFloat64}) {
      for (const DType rhs : {DType::kFloat32, DType::kFloat64}) {
        for (const Layout layout : {Layout::kColumnMajor, Layout::kRowMajor}) {
          FactorRequest request;
          request.matrix_dtype = matrix;
          request.factor_dtype = factor;
          request.layout = layout;
          ASSERT_OK_AND_ASSIGN(const Factorization f, runner.Factor(a, n, request));
          SolveRequest solve;
          solve.dtype = rhs;
          solve.layout = layout;
          ASSERT_OK_AND_ASSIGN(const Solution x, runner.Solve(f, b, 2, solve));
          EXPECT_LT(SolveRatio(a, n, Op::kNone, x.x, b, 2, DType::kFloat32), kThreshold);
        }
      }
    }
  }
}

}  // namespace
}  // namespace crout::testing::gallery_solve_test
