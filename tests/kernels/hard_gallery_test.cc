// SPDX-License-Identifier: Apache-2.0

// Tests every method with pivoting, in every type, on matrices for which elimination loses
// accuracy. Results must be as accurate as reported, and warnings must agree with the reference
// solver.
#include <algorithm>
#include <cmath>
#include <complex>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/algorithm_registry.h"
#include "kernels/jobs/direct_solve.h"
#include "kernels/sparse/ordering_process.h"
#include "tests/kernels/jobs/batch_jobs_testing.h"
#include "tests/kernels/jobs/sparse_job_testing.h"
#include "tests/support/matrices/hard_matrices.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/device_under_test.h"
#include "tests/support/runners/job_runner.h"

namespace crout::testing::hard_gallery_test {
namespace {

constexpr auto kNeverStop = [] { return false; };

struct Case {
  HardMatrix matrix;
  DenseOracle oracle;
  ComplexMatrix b;

  // Returns the condition number times the unit roundoff.
  double Sensitivity() const { return unit / oracle.rcond(); }

  double unit = 0;
};

class HardGalleryTest : public OnDeviceUnderTest<JobRunner, ::testing::TestWithParam<DType>> {
 protected:
  DType dtype() const { return GetParam(); }
  double unit() const { return UnitRoundoff(dtype()); }
  double accepted(int64_t n) const { return AcceptedBackwardError(dtype(), n); }
  bool IsPoor(double growth) const { return IsGrowthHarmful(growth, dtype()); }

  Case CaseOf(HardMatrix matrix) const {
    const ComplexMatrix random = RandomComplex(matrix.n, 1, 5);
    ComplexMatrix b(matrix.n);
    for (int64_t i = 0; i < matrix.n; ++i) {
      b[i] = IsComplex(dtype()) ? random[i] : std::complex<double>(random[i].real());
    }
    DenseOracle oracle(matrix.a, matrix.n);
    return {std::move(matrix), std::move(oracle), Rounded(std::move(b), dtype()), unit()};
  }
  std::vector<Case> Cases() const {
    std::vector<Case> cases;
    for (HardMatrix& matrix : HardMatrices(dtype())) cases.push_back(CaseOf(std::move(matrix)));
    return cases;
  }

  void CheckFactor(const Case& one, const FactorSummary& summary,
                   bool leaves_determinants = true) const;
  void CheckSolution(const Case& one, const FactorSummary& factor, const ComplexMatrix& x,
                     const SolveSummary& solved) const;
  absl::StatusOr<Factorization> FactorSparsely(const Case& one, const std::string& method);
  absl::StatusOr<ComplexSolution> SolveSparsely(const Case& one, const Factorization& factor);
};

// Checks `info`, the condition estimate, the determinant and the warnings of a factor.
void HardGalleryTest::CheckFactor(const Case& one, const FactorSummary& summary,
                                  bool leaves_determinants) const {
  const double n = static_cast<double>(one.matrix.n);
  const double sensitivity = one.Sensitivity();
  if (summary.info > 0) {
    EXPECT_GT(n * sensitivity, 1) << "info " << summary.info;
    return;
  }
  EXPECT_EQ(summary.is_poor(), IsPoorFactor(*summary.quality, summary.pivot_growth, dtype()));
  if (summary.is_poor() || summary.is_perturbed()) return;
  if (n * sensitivity < 1e-3) {
    EXPECT_FALSE(summary.is_nearly_singular());
    FactorSummary without = summary;
    without.rcond.reset();
    EXPECT_FALSE(without.is_nearly_singular()) << summary.condition_signal;
    ASSERT_TRUE(summary.rcond.has_value());
    EXPECT_GT(*summary.rcond, 0.3 * one.oracle.rcond());
    EXPECT_LT(*summary.rcond, 12 * one.oracle.rcond());
    ASSERT_EQ(summary.det_sign.has_value(), leaves_determinants);
    if (!leaves_determinants) return;
    const std::complex<double> sign{*summary.det_sign, summary.det_sign_imaginary};
    const double tolerance = n * summary.pivot_growth * sensitivity;
    EXPECT_LT(std::abs(sign - one.oracle.det_sign()), 10 * tolerance);
    EXPECT_NEAR(*summary.det_log_abs, one.oracle.det_log_abs(), 10 * tolerance);
  }
  if (sensitivity > 10) {
    EXPECT_TRUE(summary.is_nearly_singular()) << "condition " << 1 / one.oracle.rcond();
  }
}

void HardGalleryTest::CheckSolution(const Case& one, const FactorSummary& factor,
                                    const ComplexMatrix& x, const SolveSummary& solved) const {
  const int64_t n = one.matrix.n;
  const double error = BackwardError(one.matrix.a, n, Op::kNone, x, one.b, 1);
  ASSERT_TRUE(solved.backward_error.has_value());
  // The residual has one more rounding error than the reference.
  EXPECT_LT(error, 2 * *solved.backward_error + 4 * unit());
  const bool unbounded = solved.forward_error_bound && !std::isfinite(*solved.forward_error_bound);
  EXPECT_EQ(solved.accuracy_warnings.inaccurate,
            unbounded || !(*solved.backward_error <= accepted(n)));
  if (!factor.is_poor()) {
    EXPECT_LT(error, 2 * accepted(n) * std::max(1.0, factor.pivot_growth));
  }
  if (!solved.forward_error_bound || !std::isfinite(*solved.forward_error_bound)) return;
  if (1 / one.oracle.rcond() > 1e16) return;  // the reference is not accurate enough
  EXPECT_LE(ErrorOverBound(x, one.oracle.Solve(one.b), n, 1, *solved.forward_error_bound), 1);
}

TEST_P(HardGalleryTest, DenseMethodsAreAsAccurateAsTheyReport) {
  for (const Case& one : Cases()) {
    for (const auto& algorithm : DeviceUnderTest()->catalogue().algorithms) {
      const MethodTraits& traits = algorithm->traits();
      if (traits.pivoting == PivotRule::kNone || !traits.types.contains(dtype())) continue;
      SCOPED_TRACE(::testing::Message() << one.matrix.name << " " << traits.name);
      FactorRequest request;
      request.algorithm = std::string(traits.name);
      request.matrix_dtype = request.factor_dtype = dtype();
      request.condition = request.determinant = true;
      const auto factor = runner_->FactorComplex(one.matrix.a, one.matrix.n, request);
      // An iterative method returns an error if it does not converge or overflows.
      if (traits.iterative && !factor.ok()) continue;
      ASSERT_OK(factor);
      CheckFactor(one, factor->summary);
      if (factor->summary.info > 0) continue;
      SolveRequest solve;
      solve.dtype = dtype();
      solve.error_bound = true;
      ASSERT_OK_AND_ASSIGN(const ComplexSolution solution,
                           runner_->SolveComplex(*factor, one.b, 1, solve));
      CheckSolution(one, factor->summary, solution.x, solution.summary);
    }
  }
}

absl::StatusOr<Factorization> HardGalleryTest::FactorSparsely(const Case& one,
                                                              const std::string& method) {
  const PackedSparse a = PackSparse(one.matrix.a, one.matrix.n, dtype());
  AnalysisOptions options;
  options.ordering_program = OrderingProgram();
  CROUT_ASSIGN_OR_RETURN(Analysis analysis, Analyze(a.view(), options, kNeverStop));
  SparseFactorizeOptions wanted;
  wanted.method = MethodOf(*DeviceUnderTest(), method);
  wanted.factor_dtype = dtype();
  wanted.condition = true;
  wanted.determinant = wanted.method.lu->SupportsDeterminants();
  CROUT_ASSIGN_OR_RETURN(
      const SparseFactorizePlan plan,
      PlanSparseFactorize(wanted, std::make_shared<const Analysis>(std::move(analysis)), false,
                          dtype()));
  CROUT_ASSIGN_OR_RETURN(Buffer upload, Uploaded(runner_->context(), a.view()));
  GrantingGrowth growth;
  return FactorizeSparse(runner_->context(), plan, std::move(upload), kNeverStop,
                         runner_->timings(), &growth);
}

// Solves like the service.
absl::StatusOr<ComplexSolution> HardGalleryTest::SolveSparsely(const Case& one,
                                                               const Factorization& factor) {
  SolveOptions options;
  options.solver = MethodOf(*DeviceUnderTest(), factor.summary.algorithm).solver;
  options.error_bound = true;
  if (IsUnstable(factor.summary.sparse->numeric)) {
    options.max_corrections = 100;
  } else {
    options.max_refinement_steps = 2;
  }
  const PackedMatrix shape{nullptr, dtype(), Layout::kColumnMajor, one.matrix.n, 1};
  CROUT_ASSIGN_OR_RETURN(const SolvePlan plan, PlanSolve(options, factor.summary, shape));
  CROUT_ASSIGN_OR_RETURN(Buffer upload, runner_->Upload(Packed(one.b, one.matrix.n, 1, dtype())));
  std::vector<std::byte> out(plan.delivered.bytes());
  ComplexSolution solution;
  CROUT_ASSIGN_OR_RETURN(solution.summary,
                         Solve(runner_->context(), plan, factor, std::move(upload), out.data(),
                               kNeverStop, runner_->timings()));
  solution.x = Unpacked<std::complex<double>>(out.data(), plan.delivered);
  return solution;
}

TEST_P(HardGalleryTest, SparseMethodsAreAsAccurateAsTheyReport) {
  for (const Case& one : Cases()) {
    for (const auto& lu : DeviceUnderTest()->catalogue().sparse_lus) {
      if (!lu->SupportsSparse(dtype())) continue;
      SCOPED_TRACE(::testing::Message() << one.matrix.name << " " << lu->name());
      ASSERT_OK_AND_ASSIGN(const Factorization factor,
                           FactorSparsely(one, std::string(lu->name())));
      CheckFactor(one, factor.summary, lu->SupportsDeterminants());
      if (factor.summary.info > 0) continue;
      ASSERT_OK_AND_ASSIGN(const ComplexSolution solution, SolveSparsely(one, factor));
      CheckSolution(one, factor.summary, solution.x, solution.summary);
      if (lu->ProvidesFronts() && one.Sensitivity() < 1e-3) {
        EXPECT_LE(*solution.summary.backward_error, accepted(one.matrix.n));
      }
    }
  }
}

TEST_P(HardGalleryTest, DirectSolversAreAsAccurateAsTheyReport) {
  for (const Case& one : Cases()) {
    const int64_t n = one.matrix.n;
    const PackedMatrix matrix{nullptr, dtype(), Layout::kColumnMajor, n, n};
    const PackedMatrix rhs{nullptr, dtype(), Layout::kColumnMajor, n, 1};
    for (const auto& solver : DeviceUnderTest()->catalogue().direct_solvers) {
      if (!solver->traits().types.contains(dtype())) continue;
      SCOPED_TRACE(::testing::Message() << one.matrix.name << " " << solver->name());
      ASSERT_OK_AND_ASSIGN(
          const DirectSolvePlan plan,
          PlanDirectSolve({.solver = solver.get(), .dtype = dtype()}, matrix, rhs));
      ASSERT_OK_AND_ASSIGN(Buffer a, runner_->Upload(Packed(one.matrix.a, n, n, dtype())));
      ASSERT_OK_AND_ASSIGN(Buffer b, runner_->Upload(Packed(one.b, n, 1, dtype())));
      std::vector<std::byte> out(plan.delivered.bytes());
      ASSERT_OK_AND_ASSIGN(const DirectSolveSummary summary,
                           SolveDirectly(runner_->context(), plan, std::move(a), std::move(b),
                                         out.data(), kNeverStop, runner_->timings()));
      if (summary.info > 0) {
        EXPECT_GT(static_cast<double>(n) * one.Sensitivity(), 1) << "info " << summary.info;
        continue;
      }
      const auto x = Unpacked<std::complex<double>>(out.data(), plan.delivered);
      ASSERT_TRUE(summary.backward_error.has_value());
      EXPECT_LT(BackwardError(one.matrix.a, n, Op::kNone, x, one.b, 1),
                2 * *summary.backward_error + 4 * unit());
      EXPECT_EQ(summary.accuracy_warnings.inaccurate, !(*summary.backward_error <= accepted(n)));
      if (one.Sensitivity() > 10) {
        EXPECT_TRUE(summary.accuracy_warnings.inaccurate ||
                    summary.accuracy_warnings.nearly_singular)
            << "condition " << 1 / one.oracle.rcond();
      }
    }
  }
}

TEST_P(HardGalleryTest, BatchesAreAsAccurateAsTheyReport) {
  const std::vector<Case> cases = Cases();
  DispatchDType(dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<Member<T>> members;
    std::vector<Rhs<T>> systems;
    const auto member_of = [](const ComplexMatrix& a, int64_t rows, int64_t cols) {
      Member<T> member{rows, cols, std::vector<T>(a.size())};
      const auto bytes = Packed(a, rows, cols, kDTypeOf<T>);
      std::copy_n(bytes.data(), bytes.size(), reinterpret_cast<std::byte*>(member.elements.data()));
      return member;
    };
    for (const Case& one : cases) {
      systems.push_back({std::ssize(members), member_of(one.b, one.matrix.n, 1)});
      members.push_back(member_of(one.matrix.a, one.matrix.n, one.matrix.n));
    }
    BatchJobs jobs(*DeviceUnderTest(), DeviceUnderTest()->catalogue().batch_lu.get());
    ASSERT_OK_AND_ASSIGN(const FactoredBatch factor, jobs.Factor(members));
    ASSERT_OK_AND_ASSIGN(const SolvedBatch<T> solved, jobs.Solve(factor, systems));
    int64_t poor = 0;
    for (size_t k = 0; k < cases.size(); ++k) {
      const Case& one = cases[k];
      SCOPED_TRACE(one.matrix.name);
      if (factor.figures.info[k] > 0) {
        EXPECT_GT(static_cast<double>(one.matrix.n) * one.Sensitivity(), 1);
        continue;
      }
      poor += IsPoorFactor(factor.figures.quality[k], factor.figures.pivot_growth[k], dtype());
      ComplexMatrix x;
      for (const T v : solved.x[k].elements) x.push_back(std::complex<double>(v));
      const double error = BackwardError(one.matrix.a, one.matrix.n, Op::kNone, x, one.b, 1);
      EXPECT_LT(error, 2 * solved.errors[k] + 4 * unit());
      EXPECT_LT(error, 2 * accepted(one.matrix.n) * std::max(1.0, factor.figures.pivot_growth[k]));
    }
    EXPECT_EQ(factor.factorization.summary.batch->poor, poor);
  });
}

// Wright's matrix of order 400 has a condition number below 100 and a zero pivot.
TEST_P(HardGalleryTest, DoesNotReportMatricesWithGrowthAsSingular) {
  constexpr int64_t kN = 400;
  const ComplexMatrix wright = Turned(Wright(kN), kN, dtype());
  // The same matrix, followed by three decoupled unknowns.
  constexpr int64_t kMore = kN + 3;
  ComplexMatrix longer(kMore * kMore);
  for (int64_t j = 0; j < kN; ++j) {
    std::copy_n(&wright[j * kN], kN, &longer[j * kMore]);
  }
  for (int64_t j = kN; j < kMore; ++j) longer[j + j * kMore] = 2;
  for (const auto& algorithm : DeviceUnderTest()->catalogue().algorithms) {
    const MethodTraits& traits = algorithm->traits();
    if (traits.pivoting == PivotRule::kNone || !traits.types.contains(dtype())) continue;
    for (const auto& [a, n] : {std::pair(wright, kN), std::pair(longer, kMore)}) {
      SCOPED_TRACE(::testing::Message() << traits.name << " " << n);
      FactorRequest request;
      request.algorithm = std::string(traits.name);
      request.matrix_dtype = request.factor_dtype = dtype();
      request.condition = request.determinant = true;
      const auto factor = runner_->FactorComplex(a, n, request);
      if (traits.iterative && !factor.ok()) continue;
      ASSERT_OK(factor);
      const FactorSummary& summary = factor->summary;
      EXPECT_GE(summary.pivot_growth * unit(), 1);
      if (summary.info > 0) {
        EXPECT_TRUE(summary.is_inconclusive());
        EXPECT_EQ(traits.unit_diagonal, UnitDiagonal::kU);
        EXPECT_LT(summary.info, n);
        continue;
      }
      EXPECT_TRUE(summary.is_poor());
      EXPECT_FALSE(summary.is_nearly_singular() && summary.pivot_replaced);
      if (summary.pivot_replaced) {
        EXPECT_FALSE(summary.det_sign.has_value());
        EXPECT_FALSE(summary.rcond.has_value());
      }
      SolveRequest solve;
      solve.dtype = dtype();
      ASSERT_OK_AND_ASSIGN(const ComplexSolution solution,
                           runner_->SolveComplex(*factor, ComplexMatrix(n, 1.0), 1, solve));
      EXPECT_TRUE(solution.summary.accuracy_warnings.inaccurate);
    }
  }
}

TEST_P(HardGalleryTest, DoesNotReportMembersWithGrowthAsSingular) {
  constexpr int64_t kN = 400;
  DispatchDType(dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto bytes = Packed(Turned(Wright(kN), kN, dtype()), kN, kN, dtype());
    Member<T> wright{kN, kN, std::vector<T>(kN * kN)};
    std::copy_n(bytes.data(), bytes.size(), reinterpret_cast<std::byte*>(wright.elements.data()));
    Member<T> zero{3, 3, std::vector<T>(9)};
    BatchJobs jobs(*DeviceUnderTest(), DeviceUnderTest()->catalogue().batch_lu.get());
    const std::vector<Member<T>> members = {RandomMember<T>(5, 5, 1), wright, zero};
    ASSERT_OK_AND_ASSIGN(const FactoredBatch factor, jobs.Factor(members));
    EXPECT_EQ(factor.figures.info[0], 0);
    EXPECT_EQ(factor.figures.info[1], 0);
    EXPECT_EQ(factor.figures.info[2], 1);
    EXPECT_GE(factor.figures.pivot_growth[1] * unit(), 1);
    const BatchSummary& batch = *factor.factorization.summary.batch;
    EXPECT_EQ(batch.singular, 1);
    EXPECT_EQ(batch.poor, 1);
    EXPECT_EQ(batch.first_poor, 1);
    const std::vector<Rhs<T>> systems = {{1, Member<T>{kN, 1, std::vector<T>(kN, T{1})}}};
    ASSERT_OK_AND_ASSIGN(const SolvedBatch<T> solved, jobs.Solve(factor, systems));
    EXPECT_EQ(solved.info[0], 0);
    EXPECT_FALSE(solved.errors[0] <= accepted(kN));
  });
}

INSTANTIATE_TEST_SUITE_P(Types, HardGalleryTest, ::testing::ValuesIn(kDTypes),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

}  // namespace
}  // namespace crout::testing::hard_gallery_test
