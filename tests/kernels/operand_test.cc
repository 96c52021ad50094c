// SPDX-License-Identifier: Apache-2.0

// Tests that code written for (Operand, InverseOperator) works with any pair: with the factor of
// another matrix, a matrix that is not dense, or an inverse that is not a factor.
#include "kernels/operators.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/host/device/host_device.h"
#include "kernels/numerics/condition.h"
#include "kernels/numerics/error_bound.h"
#include "kernels/numerics/factor_solver.h"
#include "kernels/numerics/operands.h"
#include "kernels/numerics/refinement.h"
#include "kernels/numerics/residual_check.h"
#include "tests/support/matrices/triplets.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::operand_test {
namespace {

constexpr double kRoundoff = 0x1p-53;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kColumns = 2;  // number of right-hand sides
constexpr Op kOps[] = {Op::kNone, Op::kTranspose};

// The vectors of op(A) X = B in host memory, which the host device uses directly.
struct Vectors {
  explicit Vectors(HostMatrix rhs) : b(std::move(rhs)) {}

  HostMatrix b;
  HostMatrix x = HostMatrix(b.size());
  HostMatrix r = x;
  HostMatrix w = x;
  HostMatrix previous = x;
};

class OperandTest : public ::testing::Test {
 protected:
  // Views `m` as a column-major matrix with n rows.
  static MatrixView<double> View(HostMatrix& m, int64_t n) {
    return {m.data(), n, static_cast<int64_t>(m.size()) / n, n};
  }
  static DenseOperand Dense(HostMatrix& a, int64_t n) {
    return {AsAny(View(a, n)), NormOne(a, n), NormInf(a, n)};
  }
  static CheckedSystem System(const Operand& a, Op op, Vectors& v) {
    const int64_t n = a.order();
    return {&a, op, View(v.x, n), View(v.b, n), View(v.r, n), View(v.w, n)};
  }

  absl::StatusOr<Factorization> Factor(const HostMatrix& a, int64_t n, DType dtype) {
    FactorRequest request;
    request.factor_dtype = dtype;
    return runner_.Factor(a, n, request);
  }
  absl::StatusOr<FactorSolver> Inverse(const Factorization& factor) {
    auto options = runner_.Options(SolveRequest{}, factor.summary, kColumns);
    if (!options.ok()) return options.status();
    return FactorSolver::Create(context_, factor, *options->solver, 0, kColumns);
  }
  // Sets X to op(M) B, where M is the inverse operator.
  absl::Status FirstSolve(InverseOperator& inverse, Op op, Vectors& v) {
    return inverse.Apply(op, View(v.b, inverse.order()), View(v.x, inverse.order()));
  }
  absl::StatusOr<Refinement> Refine(ResidualCheck& check, InverseOperator& inverse, Vectors& v,
                                    StopRequested stop = JobRunner::NeverStop()) {
    const RefinementLimits limits{.max_steps = 100, .tolerance = kRoundoff};
    return crout::Refine(context_, check, inverse, limits, View(v.previous, inverse.order()), stop);
  }

  const std::unique_ptr<Device> device_ = host::MakeDevice({});
  JobRunner runner_{*device_};
  ExecutionContext& context_ = runner_.context();
};

class OldFactorTest : public OperandTest, public ::testing::WithParamInterface<DType> {
 protected:
  static constexpr int64_t kN = 40;

  // Entries have few digits, so that right-hand sides are exact and true solutions are known.
  HostMatrix old_ = OnGrid(WithCondition(kN, 100, 3), 0x1p-40);
  const HostMatrix x_true_ = OnGrid(RandomMatrix(kN, kColumns, 7), 0x1p-5);
};

// Returns the smallest e such that |a - b| <= e |b| elementwise.
double Distance(const HostMatrix& a, const HostMatrix& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) largest = std::max(largest, std::abs((a[i] - b[i]) / b[i]));
  }
  return largest;
}

TEST_P(OldFactorTest, SolvesANearbyMatrix) {
  HostMatrix near = old_;
  const HostMatrix change = RandomMatrix(kN, kN, 11);
  for (size_t i = 0; i < near.size(); ++i) near[i] *= 1 + 1e-5 * change[i];
  near = OnGrid(near, 0x1p-40);
  ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(old_, kN, GetParam()));
  ASSERT_OK_AND_ASSIGN(FactorSolver inverse, Inverse(factor));
  const DenseOperand a = Dense(near, kN);
  for (const Op op : kOps) {
    Vectors v(Multiply(near, kN, op, x_true_, kColumns));
    ASSERT_OK(FirstSolve(inverse, op, v));
    ResidualCheck check(context_, System(a, op, v));
    ASSERT_OK(check.Measure());
    EXPECT_GT(check.errors().normwise, 1e-9);
    ASSERT_OK_AND_ASSIGN(const Refinement done, Refine(check, inverse, v));
    EXPECT_GE(done.corrections, 2);
    EXPECT_LT(check.errors().normwise, 4 * kRoundoff);
    EXPECT_LT(BackwardError(near, kN, op, v.x, v.b, kColumns), 4 * kRoundoff);
    // X does not solve the old system.
    EXPECT_GT(BackwardError(old_, kN, op, v.x, v.b, kColumns), 1e-9);

    const auto bound = [&](double relative) {
      return BoundForwardError(context_, check.system(), inverse, {.relative = relative},
                               JobRunner::NeverStop());
    };
    ASSERT_OK_AND_ASSIGN(const double known,
                         bound(inverse.Error().relative + Distance(old_, near)));
    EXPECT_LE(ErrorOverBound(v.x, x_true_, kN, kColumns, known), 1);
    EXPECT_LT(known, 1e-10);
    ASSERT_OK_AND_ASSIGN(const double of_exact_inverse, bound(0));
    EXPECT_LT(of_exact_inverse, known);
    ASSERT_OK_AND_ASSIGN(const double unknown, bound(kInfinity));
    EXPECT_EQ(unknown, kInfinity);
  }
}

TEST_P(OldFactorTest, KeepsSolutionIfFactorIsUseless) {
  HostMatrix far = old_;
  for (double& v : far) v *= 3;  // each correction doubles the residual
  ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(old_, kN, GetParam()));
  ASSERT_OK_AND_ASSIGN(FactorSolver inverse, Inverse(factor));
  const DenseOperand a = Dense(far, kN);
  for (const Op op : kOps) {
    Vectors v(RandomMatrix(kN, kColumns, 5));
    ASSERT_OK(FirstSolve(inverse, op, v));
    ResidualCheck check(context_, System(a, op, v));
    ASSERT_OK(check.Measure());
    const BackwardErrors before = check.errors();
    const HostMatrix x = v.x;
    const HostMatrix r = v.r;
    ASSERT_OK_AND_ASSIGN(const Refinement done, Refine(check, inverse, v));
    EXPECT_EQ(done.corrections, 0);
    EXPECT_EQ(done.applications, 1);
    EXPECT_EQ(v.x, x);
    EXPECT_EQ(v.r, r);
    EXPECT_EQ(check.errors().normwise, before.normwise);
  }
}

TEST_P(OldFactorTest, StopsDuringRefinement) {
  ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(old_, kN, GetParam()));
  ASSERT_OK_AND_ASSIGN(FactorSolver inverse, Inverse(factor));
  const DenseOperand a = Dense(old_, kN);
  Vectors v(RandomMatrix(kN, kColumns, 5));  // the initial X is 0
  ResidualCheck check(context_, System(a, Op::kNone, v));
  ASSERT_OK(check.Measure());
  EXPECT_EQ(check.errors().normwise, 1);
  EXPECT_THAT(Refine(check, inverse, v, [] { return true; }),
              FailsWith(absl::StatusCode::kCancelled, ""));
  EXPECT_EQ(v.x, HostMatrix(v.x.size()));
}

INSTANTIATE_TEST_SUITE_P(Factors, OldFactorTest,
                         ::testing::Values(DType::kFloat64, DType::kFloat32));

// A diagonally dominant, unsymmetric matrix whose entries have few digits.
Triplets Dominant(int64_t n) {
  std::vector<Triplets::Entry> entries;
  for (int64_t i = 0; i < n; ++i) {
    entries.push_back({i, i, 16.0 + static_cast<double>(i % 3)});
    entries.push_back({i, (i + 1) % n, -1.25});
    entries.push_back({i, (i + 7) % n, 0x1p-10 * static_cast<double>(i)});
  }
  return {n, std::move(entries)};
}

class SparseOperandTest : public OperandTest {
 protected:
  static constexpr int64_t kN = 30;

  const Triplets a_ = Dominant(kN);
  HostMatrix dense_ = a_.Dense();
  const HostMatrix x_true_ = OnGrid(RandomMatrix(kN, kColumns, 7), 0x1p-5);
};

TEST_F(SparseOperandTest, GivesTheBackwardErrorsOfTheDenseMatrix) {
  ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(dense_, kN, DType::kFloat32));
  ASSERT_OK_AND_ASSIGN(FactorSolver inverse, Inverse(factor));
  const DenseOperand dense = Dense(dense_, kN);
  ASSERT_NE(NormOne(dense_, kN), NormInf(dense_, kN));
  for (const Op op : kOps) {
    EXPECT_EQ(a_.NormInf(op), dense.NormInf(op));
    Vectors v(RandomMatrix(kN, kColumns, 5));
    ASSERT_OK(FirstSolve(inverse, op, v));
    ResidualCheck check(context_, System(a_, op, v));
    ASSERT_OK(check.Measure());
    const auto [normwise, componentwise] = check.errors();
    EXPECT_GT(normwise, 1e-10);  // limited by float32
    EXPECT_NEAR(normwise, BackwardError(dense_, kN, op, v.x, v.b, kColumns), 1e-14);
    EXPECT_NEAR(componentwise, ComponentwiseError(dense_, kN, op, v.x, v.b, kColumns), 1e-14);
    EXPECT_EQ(a_.wide_residuals(), 0);
  }
}

TEST_F(SparseOperandTest, SupportsRefinementAndErrorBounds) {
  ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(dense_, kN, DType::kFloat32));
  ASSERT_OK_AND_ASSIGN(FactorSolver inverse, Inverse(factor));
  const DenseOperand dense = Dense(dense_, kN);
  for (const Op op : kOps) {
    Vectors v(Multiply(dense_, kN, op, x_true_, kColumns));
    ASSERT_OK(FirstSolve(inverse, op, v));
    ResidualCheck check(context_, System(a_, op, v));
    ASSERT_OK(check.Measure());
    ASSERT_OK(Refine(check, inverse, v));
    EXPECT_LT(BackwardError(dense_, kN, op, v.x, v.b, kColumns), 4 * kRoundoff);

    const auto bound = [&](const Operand& a) {
      return BoundForwardError(context_, System(a, op, v), inverse, inverse.Error(),
                               JobRunner::NeverStop());
    };
    ASSERT_OK_AND_ASSIGN(const double of_sparse, bound(a_));
    EXPECT_LE(ErrorOverBound(v.x, x_true_, kN, kColumns, of_sparse), 1);
    ASSERT_OK_AND_ASSIGN(const double of_dense, bound(dense));
    EXPECT_NEAR(of_sparse, of_dense, 0.01 * of_dense);
  }
}

// The inverse of a diagonal matrix, without a factor.
class DiagonalInverse final : public InverseOperator {
 public:
  explicit DiagonalInverse(std::vector<double> diagonal) : diagonal_(std::move(diagonal)) {}

  int64_t order() const override { return static_cast<int64_t>(diagonal_.size()); }
  DType vector_type() const override { return DType::kFloat64; }
  absl::Status Apply(Op, const AnyMatrix& any_in, const AnyMatrix& any_out) override {
    const auto in = any_in.As<double>();
    const auto out = any_out.As<double>();
    for (int64_t k = 0; k < in.cols; ++k) {
      for (int64_t i = 0; i < in.rows; ++i) out(i, k) = in(i, k) / diagonal_[i];
    }
    return absl::OkStatus();
  }

 private:
  const std::vector<double> diagonal_;
};

// Refinement with the inverse of the diagonal is the Jacobi iteration.
TEST_F(SparseOperandTest, SolvesWithoutAFactor) {
  std::vector<double> diagonal;
  for (int64_t i = 0; i < kN; ++i) diagonal.push_back(dense_[i + i * kN]);
  DiagonalInverse inverse(diagonal);
  for (const Op op : kOps) {
    Vectors v(RandomMatrix(kN, kColumns, 5));
    ASSERT_OK(FirstSolve(inverse, op, v));
    ResidualCheck check(context_, System(a_, op, v));
    ASSERT_OK(check.Measure());
    ASSERT_OK_AND_ASSIGN(const Refinement done, Refine(check, inverse, v));
    EXPECT_GT(done.corrections, 5);
    EXPECT_LT(BackwardError(dense_, kN, op, v.x, v.b, kColumns), 4 * kRoundoff);
  }
}

TEST_F(OperandTest, ComputesOverflowingResidualsInExtendedRange) {
  for (const auto& [large, x] : {std::pair(0x1p1022, 8.0), {0x1p1023, 1.0}}) {
    // The products or the norm of the first row overflow, but its residual is 0.
    const Triplets a(2, {{0, 0, large}, {0, 1, -large}, {1, 1, 1}});
    Vectors v({0, x + 1});
    v.x = {x, x};
    ResidualCheck check(context_, System(a, Op::kNone, v));
    ASSERT_OK(check.Measure());
    EXPECT_EQ(a.wide_residuals(), 1);
    EXPECT_EQ(v.r, (HostMatrix{0, 1}));
    EXPECT_LT(check.errors().normwise, 1e-300);
    EXPECT_EQ(check.errors().componentwise, 1 / (2 * x + 1));
    ASSERT_OK(check.Measure());  // uses the extended range at once
    EXPECT_EQ(a.wide_residuals(), 2);
  }
}

TEST_F(OperandTest, EstimatesRcondWithAndWithoutScales) {
  const auto rcond = [&](InverseOperator& inverse, const HostScales& scales, double norm_one) {
    return EstimateRcond(context_, inverse, scales, norm_one, JobRunner::NeverStop());
  };
  DiagonalInverse inverse({4, 1, -8});
  ASSERT_OK_AND_ASSIGN(const double plain, rcond(inverse, {}, 8));
  EXPECT_EQ(plain, 1.0 / 8);
  // The scales satisfy diag(row) A diag(col) = diag(4, 1, -8).
  ASSERT_OK_AND_ASSIGN(const double scaled,
                       rcond(inverse, {{0x1p-400, 1, 1}, {1, 1, 0x1p500}}, 0x1p402));
  EXPECT_EQ(scaled, 0x1p-899);  // |A^-1| = 2^500 / 8
}

}  // namespace
}  // namespace crout::testing::operand_test
