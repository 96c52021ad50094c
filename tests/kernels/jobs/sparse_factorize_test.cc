// SPDX-License-Identifier: Apache-2.0

// Tests dense factorizations of matrices that arrive as sparse matrices: factors equal those of the
// dense form bit by bit, and the stored matrix is sparse.
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/host/device/host_device.h"
#include "kernels/jobs/factorize.h"
#include "kernels/jobs/solve.h"
#include "kernels/numerics/operands.h"
#include "kernels/util/size_class.h"
#include "tests/support/fakes/fake_device.h"
#include "tests/support/matrices/packed_sparse.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::sparse_factorize_test {
namespace {

constexpr int64_t kN = 70;
constexpr int64_t kNrhs = 3;

std::string BytesOf(const Buffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data()), buffer.size()};
}

void ExpectSameSummary(const FactorSummary& sparse, const FactorSummary& dense) {
  EXPECT_EQ(sparse.info, dense.info);
  EXPECT_EQ(sparse.norm_one, dense.norm_one);
  EXPECT_EQ(sparse.norm_inf, dense.norm_inf);
  EXPECT_EQ(sparse.pivot_growth, dense.pivot_growth);
  EXPECT_EQ(sparse.quality, dense.quality);
  EXPECT_EQ(sparse.rcond, dense.rcond);
  EXPECT_EQ(sparse.rcond_scaled, dense.rcond_scaled);
  EXPECT_EQ(sparse.det_sign, dense.det_sign);
  EXPECT_EQ(sparse.det_log_abs, dense.det_log_abs);
  EXPECT_EQ(sparse.row_scaled, dense.row_scaled);
  EXPECT_EQ(sparse.col_scaled, dense.col_scaled);
}

class SparseFactorizeTest : public ::testing::Test {
 protected:
  // Returns requests with all combinations of matrix type, factor type, equilibration and
  // keep_matrix.
  static std::vector<FactorRequest> Requests() {
    std::vector<FactorRequest> requests;
    for (const DType matrix : {DType::kFloat32, DType::kFloat64}) {
      for (const DType factor : {DType::kFloat32, DType::kFloat64}) {
        for (const EquilibrateMode mode :
             {EquilibrateMode::kOff, EquilibrateMode::kAuto, EquilibrateMode::kOn}) {
          for (const bool keep : {true, false}) {
            FactorRequest request;
            request.matrix_dtype = matrix;
            request.factor_dtype = factor;
            request.equilibrate = mode;
            request.keep_matrix = keep;
            request.condition = request.determinant = true;
            requests.push_back(request);
          }
        }
      }
    }
    return requests;
  }

  // Expects the same results if `a` is uploaded as a sparse and as a dense matrix.
  void ExpectSameFactors(const HostMatrix& a, int64_t n, FactorRequest request) {
    ASSERT_OK_AND_ASSIGN(const Factorization dense, runner_.Factor(a, n, request));
    request.sparse = true;
    ASSERT_OK_AND_ASSIGN(const Factorization sparse, runner_.Factor(a, n, request));
    EXPECT_EQ(BytesOf(sparse.lu()), BytesOf(dense.lu()));
    EXPECT_EQ(BytesOf(sparse.ipiv()), BytesOf(dense.ipiv()));
    EXPECT_EQ(BytesOf(sparse.scales()), BytesOf(dense.scales()));
    ExpectSameSummary(sparse.summary, dense.summary);
    EXPECT_FALSE(sparse.matrix());
    EXPECT_EQ(sparse.has_matrix(), request.keep_matrix);
    EXPECT_EQ(bool{sparse.sparse_matrix()}, request.keep_matrix);
  }

  absl::StatusOr<Factorization> Factor(const HostMatrix& a, int64_t n,
                                       DType factor_dtype = DType::kFloat64) {
    FactorRequest request;
    request.sparse = true;
    request.factor_dtype = factor_dtype;
    return runner_.Factor(a, n, request);
  }

  const std::unique_ptr<Device> device_ = host::MakeDevice({});
  JobRunner runner_{*device_};
  const HostMatrix a_ = RandomSparse(kN, 0.1, 5);
  const HostMatrix b_ = RandomMatrix(kN, kNrhs, 6);
};

TEST_F(SparseFactorizeTest, FactorsBitForBitLikeTheDenseForm) {
  for (const auto& algorithm : device_->algorithms()) {
    for (FactorRequest request : Requests()) {
      request.algorithm = std::string(algorithm->name());
      SCOPED_TRACE(request.algorithm);
      ExpectSameFactors(a_, kN, request);
    }
  }
}

TEST_F(SparseFactorizeTest, FactorsScaledMatricesBitForBitLikeTheDenseForm) {
  HostMatrix a = a_;
  for (int64_t j = 0; j < kN; ++j) {
    for (int64_t i = 0; i < kN; ++i) a[i + j * kN] *= std::ldexp(1, (i * 7 + j * 3) % 100 - 50);
  }
  for (const FactorRequest& request : Requests()) ExpectSameFactors(a, kN, request);
  // The entries are outside the range of float32; equilibration moves them into it.
  for (double& v : a) v *= 0x1p200;
  FactorRequest narrow;
  narrow.equilibrate = EquilibrateMode::kAuto;
  narrow.factor_dtype = DType::kFloat32;
  ExpectSameFactors(a, kN, narrow);
}

TEST_F(SparseFactorizeTest, FactorsSmallAndSingularMatricesBitForBitLikeTheDenseForm) {
  FactorRequest request;
  request.condition = request.determinant = true;
  for (const int64_t n : {1, 2, 9, 600}) {
    for (const bool holes : {false, true}) {
      ExpectSameFactors(RandomSparse(n, 0.05, 3, holes), n, request);
    }
  }
}

TEST_F(SparseFactorizeTest, AcceptsOrderZero) {
  ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor({}, 0));
  EXPECT_EQ(factor.summary.n, 0);
  EXPECT_EQ(factor.parts.bytes(), 0u);
}

TEST_F(SparseFactorizeTest, ReturnsTheErrorsOfTheDenseForm) {
  FactorRequest request;
  request.factor_dtype = DType::kFloat32;
  for (const double bad : {1e200, std::nan(""), std::numeric_limits<double>::infinity()}) {
    HostMatrix a = a_;
    a[17 + 12 * kN] = a[3 + 40 * kN] = bad;
    request.sparse = false;
    const absl::Status dense = runner_.Factor(a, kN, request).status();
    request.sparse = true;
    EXPECT_EQ(runner_.Factor(a, kN, request).status(), dense);
    EXPECT_NE(std::string(dense.message()).find("at row 17, column 12 (0-based)"),
              std::string::npos);
  }
}

TEST_F(SparseFactorizeTest, VerifiesRefinesAndBoundsSolves) {
  for (const DType factor_dtype : {DType::kFloat64, DType::kFloat32}) {
    ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(a_, kN, factor_dtype));
    for (const Op op : {Op::kNone, Op::kTranspose}) {
      SolveRequest request;
      request.op = op;
      ASSERT_OK_AND_ASSIGN(const Solution plain, runner_.Solve(factor, b_, kNrhs, request));
      EXPECT_NEAR(*plain.summary.backward_error, BackwardError(a_, kN, op, plain.x, b_, kNrhs),
                  1e-15);
      EXPECT_LT(*plain.summary.backward_error, 100 * UnitRoundoff(factor_dtype));

      request.max_refinement_steps = 10;
      request.componentwise_error = request.error_bound = request.refine_componentwise = true;
      const HostMatrix x_true = RandomMatrix(kN, kNrhs, 8);
      const HostMatrix b = Multiply(a_, kN, op, x_true, kNrhs);
      ASSERT_OK_AND_ASSIGN(const Solution refined, runner_.Solve(factor, b, kNrhs, request));
      EXPECT_LT(*refined.summary.backward_error, 4 * UnitRoundoff(DType::kFloat64));
      EXPECT_LT(*refined.summary.componentwise_error, 4 * UnitRoundoff(DType::kFloat64));
      EXPECT_GE(refined.summary.refinement_steps, factor_dtype == DType::kFloat32 ? 1 : 0);
      EXPECT_LE(ErrorOverBound(refined.x, x_true, kN, kNrhs, *refined.summary.forward_error_bound),
                1);
      EXPECT_LT(*refined.summary.forward_error_bound, 1e-9);
    }
  }
}

// Products of these entries overflow float64.
TEST_F(SparseFactorizeTest, SolvesNearTheEndOfTheRange) {
  HostMatrix a = a_;
  for (double& v : a) v *= 0x1p1020;
  ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(a, kN));
  HostMatrix b = b_;
  for (double& v : b) v *= 0x1p1022;
  ASSERT_OK_AND_ASSIGN(const Solution solution, runner_.Solve(factor, b, kNrhs, {}));
  EXPECT_LT(*solution.summary.backward_error, 1e-14);
}

TEST_F(SparseFactorizeTest, SolvesBitForBitLikeTheDenseForm) {
  ASSERT_OK_AND_ASSIGN(const Factorization sparse, Factor(a_, kN));
  ASSERT_OK_AND_ASSIGN(const Factorization dense, runner_.Factor(a_, kN, {}));
  ASSERT_OK_AND_ASSIGN(const Solution of_sparse, runner_.Solve(sparse, b_, kNrhs, {}));
  ASSERT_OK_AND_ASSIGN(const Solution of_dense, runner_.Solve(dense, b_, kNrhs, {}));
  EXPECT_EQ(of_sparse.x, of_dense.x);
}

TEST_F(SparseFactorizeTest, StoresTheSparseMatrix) {
  ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(a_, kN));
  ASSERT_OK_AND_ASSIGN(const Factorization dense, runner_.Factor(a_, kN, {}));
  HostMatrix x = RandomMatrix(kN, 1, 1), b(kN), of_sparse(kN), of_dense(kN);
  const auto view = [](HostMatrix& m) { return MatrixView<double>{m.data(), kN, 1, kN}; };
  const auto multiply = [&](const Factorization& of, HostMatrix& w) {
    const auto kept = MakeKeptOperand(of);
    EXPECT_EQ(kept->order(), kN);
    EXPECT_EQ(kept->NormInf(Op::kNone), of.summary.norm_inf);
    EXPECT_EQ(kept->NormInf(Op::kTranspose), of.summary.norm_one);
    return kept->AbsProduct(runner_.context(), Op::kNone, view(x), view(b), view(w));
  };
  ASSERT_OK(multiply(factor, of_sparse));
  ASSERT_OK(multiply(dense, of_dense));
  for (int64_t i = 0; i < kN; ++i) EXPECT_NEAR(of_sparse[i], of_dense[i], 1e-14 * of_dense[i]);
}

TEST_F(SparseFactorizeTest, PlansLittleMemoryForTheSparseMatrix) {
  constexpr int64_t kLarge = 8000;
  constexpr int64_t kEntries = 40000;
  ASSERT_OK_AND_ASSIGN(FactorizeOptions options, runner_.Options(FactorRequest{}, kLarge));
  const PackedMatrix shape{nullptr, DType::kFloat64, Layout::kColumnMajor, kLarge, kLarge};
  ASSERT_OK_AND_ASSIGN(const FactorizePlan plan, PlanFactorize(options, shape, kEntries));
  options.keep_matrix = false;
  ASSERT_OK_AND_ASSIGN(const FactorizePlan without, PlanFactorize(options, shape, kEntries));
  EXPECT_EQ(plan.bytes.kept - without.bytes.kept,
            BlockBytes(*SparseBytes(kLarge, kEntries, DType::kFloat64)));
  EXPECT_LT(plan.bytes.kept - without.bytes.kept, 1'000'000u);
  const size_t lu = BlockBytes(shape.bytes());
  EXPECT_EQ(plan.bytes.peak, without.bytes.peak);
  EXPECT_LT(plan.bytes.peak, lu + lu / 100) << "no second dense matrix, at no time";
}

TEST_F(SparseFactorizeTest, UploadsAsSparseIfMuchSmaller) {
  const auto arrives = [&](int64_t n, int64_t nonzeros, DType dtype = DType::kFloat64) {
    return ArrivesSparse(*device_, n, nonzeros, dtype);
  };
  EXPECT_FALSE(arrives(0, 0));
  EXPECT_FALSE(arrives(1, 1));
  EXPECT_TRUE(arrives(8000, 40000));
  // The sparse form has 16 * 101 + 20 * nonzeros bytes, and the limit is a quarter of the 80,000
  // bytes of the dense form.
  EXPECT_TRUE(arrives(100, 919));
  EXPECT_FALSE(arrives(100, 920));
  EXPECT_FALSE(arrives(100, 919, DType::kFloat32));
  EXPECT_FALSE(arrives(100000, int64_t{1} << 31)) << "beyond the indices";
  EXPECT_FALSE(ArrivesSparse(FakeDevice(), 8000, 40000, DType::kFloat64)) << "no operations";
}

TEST_F(SparseFactorizeTest, RequiresSparseOps) {
  FakeDevice gpu;
  ASSERT_FALSE(gpu.info().has_sparse_ops);
  JobRunner runner(gpu);
  FactorRequest request;
  request.sparse = true;
  EXPECT_THAT(runner.Factor(a_, kN, request),
              FailsWith(absl::StatusCode::kUnimplemented, "sparse matrices"));
  EXPECT_EQ(gpu.counting_memory().live_bytes(), 0u);
}

TEST_F(SparseFactorizeTest, RefusesUploadOfWrongSize) {
  ASSERT_OK_AND_ASSIGN(const FactorizeOptions options, runner_.Options(FactorRequest{}, kN));
  const PackedMatrix shape{nullptr, DType::kFloat64, Layout::kColumnMajor, kN, kN};
  const PackedSparse packed = PackSparse(a_, kN, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const FactorizePlan plan,
                       PlanFactorize(options, shape, packed.nonzeros + 1));
  ASSERT_OK_AND_ASSIGN(Buffer upload, runner_.Upload(packed.bytes));
  KernelTimings timings;
  EXPECT_THAT(
      Factorize(runner_.context(), plan, std::move(upload), JobRunner::NeverStop(), timings),
      FailsWith(absl::StatusCode::kInvalidArgument, "bytes"));
}

}  // namespace
}  // namespace crout::testing::sparse_factorize_test
