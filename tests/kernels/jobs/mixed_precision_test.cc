// SPDX-License-Identifier: Apache-2.0

// Tests low-precision factors, and solves with them that are corrected to the accuracy of the
// right-hand side, on any device (device_under_test.h).
#include <algorithm>
#include <cmath>
#include <complex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/jobs/factorize_mixed.h"
#include "kernels/jobs/solve.h"
#include "kernels/util/status_macros.h"
#include "tests/support/matrices/gallery.h"
#include "tests/support/matrices/packed_sparse.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/device_under_test.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::mixed_precision_test {
namespace {

using Complex = std::complex<double>;

constexpr int64_t kN = 120;
constexpr int64_t kNrhs = 2;
const double kAccuracy = std::sqrt(static_cast<double>(kN)) * 0x1p-53;

class MixedPrecisionTest : public OnDeviceUnderTest<JobRunner> {
 protected:
  // Plans for a matrix in float64 or complex128.
  absl::StatusOr<MixedPlan> Plan(FactorRequest request,
                                 std::optional<int64_t> nonzeros = std::nullopt,
                                 FactorPrecision precision = FactorPrecision::kSingle) {
    const PackedMatrix shape{nullptr, request.matrix_dtype, request.layout, kN, kN};
    request.factor_dtype = request.matrix_dtype;
    CROUT_ASSIGN_OR_RETURN(const FactorizeOptions wide, runner_->Options(request, kN));
    request.factor_dtype = IsComplex(shape.dtype) ? DType::kComplex64 : DType::kFloat32;
    CROUT_ASSIGN_OR_RETURN(FactorizeOptions low, runner_->Options(request, kN));
    low.parameters.tf32_products =
        precision == FactorPrecision::kTf32 && low.algorithm->traits().supports_tf32_products;
    return PlanMixed(precision, low, wide, shape, nonzeros);
  }

  template <class T>
  absl::StatusOr<Factorization> Factor(const MixedPlan& plan, const std::vector<T>& a) {
    const PackedMatrix& shape = plan.low.shape;
    const std::vector<std::byte> bytes = plan.low.nonzeros
                                             ? PackSparse(a, kN, shape.dtype).bytes
                                             : Packed(a, kN, kN, shape.dtype, shape.layout);
    CROUT_ASSIGN_OR_RETURN(Buffer upload, runner_->Upload(bytes));
    return FactorizeMixed(runner_->context(), plan, std::move(upload), JobRunner::NeverStop(),
                          runner_->timings());
  }

  template <class T>
  absl::StatusOr<SolveSummary> Solve(const Factorization& factor, const std::vector<T>& b, Op op,
                                     int most, std::vector<T>* x,
                                     const Float64FactorFunction& wider = nullptr) {
    SolveRequest request;
    request.op = op;
    CROUT_ASSIGN_OR_RETURN(SolveOptions options, runner_->Options(request, factor.summary, kNrhs));
    options.max_corrections = most;
    return Solve(factor, b, options, x, wider);
  }
  template <class T>
  absl::StatusOr<SolveSummary> Solve(const Factorization& factor, const std::vector<T>& b,
                                     const SolveOptions& options, std::vector<T>* x,
                                     const Float64FactorFunction& wider = nullptr) {
    const PackedMatrix shape{nullptr, kDTypeOf<T>, Layout::kColumnMajor, kN, kNrhs};
    CROUT_ASSIGN_OR_RETURN(const SolvePlan plan, PlanSolve(options, factor.summary, shape));
    CROUT_ASSIGN_OR_RETURN(Buffer upload,
                           runner_->Upload(Packed(b, kN, kNrhs, shape.dtype, shape.layout)));
    std::vector<std::byte> out(plan.delivered.bytes());
    CROUT_ASSIGN_OR_RETURN(
        const SolveSummary summary,
        crout::Solve(runner_->context(), plan, factor, std::move(upload), out.data(),
                     JobRunner::NeverStop(), runner_->timings(), wider));
    *x = Unpacked<T>(out.data(), plan.delivered);
    return summary;
  }
};

// Wraps a solver and stores the tolerance of its last call.
class RecordingSolver final : public TriangularSolver {
 public:
  explicit RecordingSolver(const TriangularSolver& inner) : inner_(inner) {}

  double tolerance() const { return tolerance_; }

  const MethodTraits& traits() const override { return inner_.traits(); }
  double PredictSeconds(DType dtype, int64_t n, int64_t nrhs) const override {
    return inner_.PredictSeconds(dtype, n, nrhs);
  }
  absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n, int64_t nrhs) const override {
    return inner_.WorkspaceBytes(dtype, n, nrhs);
  }
  absl::Status Solve(ExecutionContext& context, const FactorView& factor, Op op, double tolerance,
                     const AnyMatrix& b, std::span<std::byte> workspace) const override {
    tolerance_ = tolerance;
    return inner_.Solve(context, factor, op, tolerance, b, workspace);
  }
  Reliability AssessPreparation(const PreparationStats& preparation, DType dtype, int64_t n,
                                Op op) const override {
    return inner_.AssessPreparation(preparation, dtype, n, op);
  }

 private:
  const TriangularSolver& inner_;
  mutable double tolerance_ = -1;  // mutable without a lock: one solve at a time
};

// A = B + i C with approximately the given condition number.
ComplexMatrix ComplexWithCondition(double condition) {
  const HostMatrix real = WithCondition(kN, condition, 3);
  ComplexMatrix a(real.size());
  for (size_t i = 0; i < a.size(); ++i) a[i] = Complex(0.6, 0.8) * real[i];
  return a;
}

ComplexMatrix ComplexRandom(uint64_t seed) {
  const HostMatrix re = RandomMatrix(kN, kNrhs, seed);
  const HostMatrix im = RandomMatrix(kN, kNrhs, seed + 1);
  ComplexMatrix b(re.size());
  for (size_t i = 0; i < b.size(); ++i) b[i] = Complex(re[i], im[i]);
  return b;
}

// Returns the first method of the device that supports TF32 products. A device without such a
// method factors in float32 with getrf.
std::string Tf32Method() {
  for (const auto& method : DeviceUnderTest()->algorithms()) {
    if (method->traits().supports_tf32_products) return std::string(method->traits().name);
  }
  return "getrf";
}

TEST_F(MixedPrecisionTest, OmitsDeterminantOfLowPrecisionFactors) {
  for (const FactorPrecision precision : {FactorPrecision::kSingle, FactorPrecision::kTf32}) {
    FactorRequest request;
    request.determinant = true;
    if (precision == FactorPrecision::kTf32) request.algorithm = Tf32Method();
    ASSERT_OK_AND_ASSIGN(const MixedPlan plan, Plan(request, std::nullopt, precision));
    ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(plan, WithCondition(kN, 1e2, 3)));
    ASSERT_EQ(factor.summary.precision, precision);
    EXPECT_FALSE(factor.summary.det_sign.has_value());
    EXPECT_FALSE(factor.summary.det_log_abs.has_value());
  }
}

TEST_F(MixedPrecisionTest, SolvesToFloat64AccuracyInHalfTheMemory) {
  const HostMatrix b = RandomMatrix(kN, kNrhs, 5);
  for (const double condition : {1e2, 1e4, 1e6}) {
    for (const Layout layout : {Layout::kColumnMajor, Layout::kRowMajor}) {
      SCOPED_TRACE(condition);
      const HostMatrix a = WithCondition(kN, condition, 3);
      FactorRequest request;
      request.layout = layout;
      ASSERT_OK_AND_ASSIGN(const MixedPlan plan, Plan(request));
      ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(plan, a));
      EXPECT_EQ(factor.summary.factor_dtype, DType::kFloat32);
      EXPECT_EQ(factor.summary.precision, FactorPrecision::kSingle);
      EXPECT_EQ(factor.summary.precision_fallback, PrecisionFallback::kNone);
      EXPECT_EQ(factor.lu().size(), kN * kN * sizeof(float));
      for (const Op op : {Op::kNone, Op::kTranspose}) {
        HostMatrix x;
        ASSERT_OK_AND_ASSIGN(const SolveSummary solved, Solve(factor, b, op, 100, &x));
        EXPECT_FALSE(solved.accuracy_warnings.inaccurate);
        EXPECT_GE(solved.corrections.value_or(0), 1);
        EXPECT_LE(*solved.backward_error, kAccuracy);
        EXPECT_LE(BackwardError(a, kN, op, x, b, kNrhs), 2 * kAccuracy);
      }
    }
  }
}

TEST_F(MixedPrecisionTest, SolvesComplexSystems) {
  const ComplexMatrix a = ComplexWithCondition(1e5);
  const ComplexMatrix b = ComplexRandom(5);
  FactorRequest request;
  request.matrix_dtype = DType::kComplex128;
  ASSERT_OK_AND_ASSIGN(const MixedPlan plan, Plan(request));
  ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(plan, a));
  EXPECT_EQ(factor.summary.factor_dtype, DType::kComplex64);
  for (const Op op : {Op::kNone, Op::kTranspose, Op::kConjugateTranspose}) {
    ComplexMatrix x;
    ASSERT_OK_AND_ASSIGN(const SolveSummary solved, Solve(factor, b, op, 100, &x));
    EXPECT_FALSE(solved.accuracy_warnings.inaccurate);
    EXPECT_LE(BackwardError(a, kN, op, x, b, kNrhs), 2 * kAccuracy);
  }
}

TEST_F(MixedPrecisionTest, SolvesWithEquilibratedFactors) {
  // The rows are outside the range of float32. Scaling moves them into it.
  HostMatrix a = WithCondition(kN, 1e3, 3);
  for (int64_t j = 0; j < kN; ++j) {
    for (int64_t i = 0; i < kN; ++i) a[i + j * kN] *= i % 2 == 0 ? 0x1p140 : 0x1p-140;
  }
  const HostMatrix b = RandomMatrix(kN, kNrhs, 5);
  FactorRequest request;
  request.equilibrate = EquilibrateMode::kAuto;
  ASSERT_OK_AND_ASSIGN(const MixedPlan plan, Plan(request));
  ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(plan, a));
  EXPECT_TRUE(factor.summary.row_scaled);
  EXPECT_EQ(factor.summary.factor_dtype, DType::kFloat32);
  HostMatrix x;
  ASSERT_OK_AND_ASSIGN(const SolveSummary solved, Solve(factor, b, Op::kNone, 100, &x));
  EXPECT_FALSE(solved.accuracy_warnings.inaccurate);
  EXPECT_LE(*solved.backward_error, kAccuracy);
}

TEST_F(MixedPrecisionTest, SolvesWithStoredSparseMatrix) {
  if (!DeviceUnderTest()->info().has_sparse_ops) GTEST_SKIP() << "no sparse matrices there";
  HostMatrix a(kN * kN);
  const HostMatrix values = RandomMatrix(kN, 3, 7);
  for (int64_t j = 0; j < kN; ++j) {
    for (int64_t i = std::max<int64_t>(0, j - 1); i <= std::min(kN - 1, j + 1); ++i) {
      a[i + j * kN] = (i == j ? 3 : 0) + values[j + (i - j + 1) * kN];
    }
  }
  const HostMatrix b = RandomMatrix(kN, kNrhs, 5);
  FactorRequest request;
  ASSERT_OK_AND_ASSIGN(const MixedPlan plan,
                       Plan(request, PackSparse(a, kN, DType::kFloat64).nonzeros));
  ASSERT_OK_AND_ASSIGN(Factorization factor, Factor(plan, a));
  EXPECT_TRUE(factor.sparse_matrix());
  HostMatrix x;
  ASSERT_OK_AND_ASSIGN(const SolveSummary solved, Solve(factor, b, Op::kNone, 100, &x));
  EXPECT_FALSE(solved.accuracy_warnings.inaccurate);
  EXPECT_LE(BackwardError(a, kN, Op::kNone, x, b, kNrhs), 2 * kAccuracy);
  // The sparse matrix is also available to the float64 factor.
  ASSERT_OK_AND_ASSIGN(
      const Factorization wide,
      RefactorInFloat64(runner_->context(), plan, std::move(factor), PrecisionFallback::kStagnation,
                        JobRunner::NeverStop(), runner_->timings()));
  EXPECT_TRUE(wide.sparse_matrix());
  ASSERT_OK_AND_ASSIGN(const SolveSummary again, Solve(wide, b, Op::kNone, 0, &x));
  EXPECT_LE(*again.backward_error, kAccuracy);
}

TEST_F(MixedPrecisionTest, ReportsInaccurateSolutions) {
  const HostMatrix a = WithCondition(kN, 1e12, 3);
  const HostMatrix b = RandomMatrix(kN, kNrhs, 5);
  ASSERT_OK_AND_ASSIGN(const MixedPlan plan, Plan({}));
  ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(plan, a));
  ASSERT_EQ(factor.summary.factor_dtype, DType::kFloat32);
  HostMatrix x;
  ASSERT_OK_AND_ASSIGN(const SolveSummary solved, Solve(factor, b, Op::kNone, 3, &x));
  EXPECT_TRUE(solved.accuracy_warnings.inaccurate);
  EXPECT_GT(*solved.backward_error, kAccuracy);
  EXPECT_NEAR(*solved.backward_error, BackwardError(a, kN, Op::kNone, x, b, kNrhs),
              0.1 * *solved.backward_error);
}

TEST_F(MixedPrecisionTest, RefactorsInFloat64AfterStagnation) {
  const HostMatrix a = WithCondition(kN, 1e12, 3);
  const HostMatrix b = RandomMatrix(kN, kNrhs, 5);
  for (const Layout layout : {Layout::kColumnMajor, Layout::kRowMajor}) {
    FactorRequest request;
    request.layout = layout;
    ASSERT_OK_AND_ASSIGN(const MixedPlan plan, Plan(request));
    ASSERT_OK_AND_ASSIGN(Factorization factor, Factor(plan, a));
    const Float64FactorFunction widen = [&]() -> absl::StatusOr<const Factorization*> {
      CROUT_ASSIGN_OR_RETURN(factor, RefactorInFloat64(runner_->context(), plan, std::move(factor),
                                                       PrecisionFallback::kStagnation,
                                                       JobRunner::NeverStop(), runner_->timings()));
      return &factor;
    };
    HostMatrix x;
    ASSERT_OK_AND_ASSIGN(const SolveSummary solved, Solve(factor, b, Op::kNone, 3, &x, widen));
    EXPECT_FALSE(solved.accuracy_warnings.inaccurate);
    EXPECT_LE(BackwardError(a, kN, Op::kNone, x, b, kNrhs), 2 * kAccuracy);
    EXPECT_EQ(factor.summary.factor_dtype, DType::kFloat64);
    EXPECT_EQ(factor.summary.precision, FactorPrecision::kFactorType);
    EXPECT_EQ(factor.summary.precision_fallback, PrecisionFallback::kStagnation);
    EXPECT_TRUE(factor.has_matrix());
  }
}

// A solver may solve with a tolerance if its results are corrected. The tolerance is 0 if the
// factor is as precise as X, or if the error bound uses uncorrected results.
TEST_F(MixedPrecisionTest, PassesToleranceToSolverOnlyIfResultsAreCorrected) {
  const HostMatrix a = WithCondition(kN, 1e4, 3);
  const HostMatrix b = RandomMatrix(kN, kNrhs, 5);
  ASSERT_OK_AND_ASSIGN(const MixedPlan plan, Plan({}));
  ASSERT_OK_AND_ASSIGN(Factorization factor, Factor(plan, a));
  ASSERT_OK_AND_ASSIGN(SolveOptions options, runner_->Options({}, factor.summary, kNrhs));
  const RecordingSolver solver(*options.solver);
  options.solver = &solver;
  options.max_corrections = 100;
  HostMatrix x;
  ASSERT_OK_AND_ASSIGN(SolveSummary solved, Solve(factor, b, options, &x));
  EXPECT_FALSE(solved.accuracy_warnings.inaccurate);
  EXPECT_EQ(solver.tolerance(), 0.01);
  options.error_bound = true;
  ASSERT_OK_AND_ASSIGN(solved, Solve(factor, b, options, &x));
  EXPECT_FALSE(solved.accuracy_warnings.inaccurate);
  EXPECT_EQ(solver.tolerance(), 0);
  options.error_bound = false;
  ASSERT_OK_AND_ASSIGN(factor, RefactorInFloat64(runner_->context(), plan, std::move(factor),
                                                 PrecisionFallback::kStagnation,
                                                 JobRunner::NeverStop(), runner_->timings()));
  ASSERT_OK_AND_ASSIGN(solved, Solve(factor, b, options, &x));
  EXPECT_FALSE(solved.accuracy_warnings.inaccurate);
  EXPECT_EQ(solver.tolerance(), 0);
}

TEST_F(MixedPrecisionTest, RefactorsInFloat64IfSingularInFloat32) {
  // The first two rows differ only by a term that float32 rounds away.
  HostMatrix a(kN * kN);
  for (int64_t j = 0; j < kN; ++j) a[j + j * kN] = 1;
  a[0 + 1 * kN] = a[1 + 0 * kN] = 1;
  a[1 + 1 * kN] = 1 + 0x1p-40;
  ASSERT_OK_AND_ASSIGN(const MixedPlan plan, Plan({}));
  ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(plan, a));
  EXPECT_EQ(factor.summary.info, 0);
  EXPECT_EQ(factor.summary.factor_dtype, DType::kFloat64);
  EXPECT_EQ(factor.summary.precision_fallback, PrecisionFallback::kUnusable);
}

TEST_F(MixedPrecisionTest, RefactorsInFloat64IfConditionEstimateIsPoor) {
  FactorRequest request;
  request.condition = true;
  ASSERT_OK_AND_ASSIGN(const MixedPlan plan, Plan(request));
  for (const double smallest : {1e-6, 1e-12}) {
    HostMatrix a(kN * kN);
    for (int64_t j = 0; j < kN; ++j) a[j + j * kN] = j == 7 ? smallest : 1;
    ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(plan, a));
    const bool hopeless = smallest == 1e-12;
    EXPECT_EQ(factor.summary.precision_fallback,
              hopeless ? PrecisionFallback::kCondition : PrecisionFallback::kNone);
    EXPECT_EQ(factor.summary.factor_dtype, hopeless ? DType::kFloat64 : DType::kFloat32);
    EXPECT_NEAR(factor.summary.rcond.value_or(0), smallest, 1e-3 * smallest);
  }
}

TEST_F(MixedPrecisionTest, RequiresStoringTheMatrix) {
  FactorRequest request;
  request.keep_matrix = false;
  const absl::Status status = Plan(request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("needs the matrix"));
}

TEST_F(MixedPrecisionTest, PlansMemoryForEitherFactor) {
  ASSERT_OK_AND_ASSIGN(const MixedPlan plan, Plan({}));
  EXPECT_GE(plan.bytes.peak, plan.low.bytes.peak);
  EXPECT_GE(plan.bytes.peak, plan.wide.bytes.peak);
  EXPECT_LT(plan.low.bytes.kept, plan.wide.bytes.kept);
}

}  // namespace
}  // namespace crout::testing::mixed_precision_test
