// SPDX-License-Identifier: Apache-2.0

// Tests complete jobs on the GPU with every method for complex types: the gallery with every
// operation, warm starts, stops, and solves without factors.
#include <cmath>
#include <complex>
#include <set>
#include <string>
#include <vector>

#include "kernels/algorithm_registry.h"
#include "kernels/jobs/direct_solve.h"
#include "tests/gpu/harness/gpu_testing.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::complex_jobs_test {
namespace {

using Complex = std::complex<double>;

class GpuComplexJobsTest : public GpuTest, public ::testing::WithParamInterface<DType> {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped()) runner_ = std::make_unique<JobRunner>(Gpu());
  }

  FactorRequest Request(std::string_view algorithm) const {
    FactorRequest request;
    request.algorithm = std::string(algorithm);
    request.matrix_dtype = request.factor_dtype = dtype_;
    return request;
  }

  // Solves with every operation and the factor of `a`.
  void CheckSolves(const ComplexMatrix& a, int64_t n, const Factorization& factor) {
    constexpr int64_t kNrhs = 3;
    const ComplexMatrix b = Rounded(RandomComplex(n, kNrhs, 7), dtype_);
    for (const Op op : kOps) {
      SolveRequest request;
      request.dtype = dtype_;
      request.op = op;
      ASSERT_OK_AND_ASSIGN(const ComplexSolution solution,
                           runner_->SolveComplex(factor, b, kNrhs, request));
      EXPECT_EQ(solution.dtype, dtype_);
      EXPECT_LT(SolveRatio(a, n, op, solution.x, b, kNrhs, dtype_), kThreshold);
      const double error = BackwardError(a, n, op, solution.x, b, kNrhs);
      EXPECT_NEAR(*solution.summary.backward_error, error, 1e-15 + 1e-6 * error);
    }
  }

  void Check(const FactorRequest& request, const ComplexGalleryKind& kind, int64_t n) {
    SCOPED_TRACE(request.algorithm + " " + kind.name + " n=" + std::to_string(n));
    const ComplexMatrix a = Rounded(kind.make(n), dtype_);
    ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_->FactorComplex(a, n, request));
    const FactorSummary& summary = factor.summary;
    EXPECT_EQ(summary.info, kind.singular_at(n));
    if (summary.info > 0) return;
    EXPECT_LT(*summary.quality, kThreshold);
    EXPECT_NEAR(summary.norm_one, NormOne(a, n), 1e-12 * summary.norm_one);
    if (kind.well_conditioned) CheckSolves(a, n, factor);
  }

  const DType dtype_ = GetParam();
  std::unique_ptr<JobRunner> runner_;
};

TEST_P(GpuComplexJobsTest, EveryMethodFactorsAndSolves) {
  for (const auto& method : Gpu().algorithms()) {
    if (!method->SupportsDense(dtype_)) continue;
    const bool pivots = method->traits().pivoting != PivotRule::kNone;
    for (const ComplexGalleryKind& kind : ComplexGallery()) {
      if (RealOf(dtype_) == DType::kFloat32 && kind.name.find("_f64") != std::string::npos)
        continue;
      const std::set<std::string> need_no_pivots = {"helmholtz", "diagonally_dominant", "graded",
                                                    "upper_triangular", "lower_triangular"};
      if (!pivots && !need_no_pivots.contains(kind.name)) continue;
      for (const int64_t n : {3, 33, 129}) Check(Request(method->name()), kind, n);
    }
  }
}

// Each method must report the determinant and condition of the host's factor, up to roundoff.
TEST_P(GpuComplexJobsTest, MatchesTheHostsDeterminantAndCondition) {
  constexpr int64_t kN = 100;
  const ComplexMatrix a = GalleryMatrix("complex_random", kN, dtype_);
  const auto factor = [&](JobRunner& runner, std::string_view method) {
    FactorRequest request = Request(method);
    request.condition = request.determinant = true;
    request.equilibrate = EquilibrateMode::kAuto;
    auto made = runner.FactorComplex(a, kN, request);
    EXPECT_OK(made);
    return made->summary;
  };
  JobRunner host(Host());
  const FactorSummary oracle = factor(host, "getrf");
  const double tolerance = 1e3 * UnitRoundoff(dtype_);
  for (const char* method : {"pcmpp", "icmpp"}) {
    SCOPED_TRACE(method);
    const FactorSummary ours = factor(*runner_, method);
    EXPECT_NEAR(*ours.det_log_abs, *oracle.det_log_abs, 100 * tolerance);
    EXPECT_NEAR(std::abs(Complex(*ours.det_sign, ours.det_sign_imaginary) -
                         Complex(*oracle.det_sign, oracle.det_sign_imaginary)),
                0, 100 * tolerance);
    EXPECT_LT(RcondRatio(*ours.rcond, ExactRcond(a, kN)), kThreshold);
  }
}

TEST_P(GpuComplexJobsTest, StartsFromTheFactorOfAnyMethod) {
  constexpr int64_t kN = 300;
  const ComplexMatrix before = GalleryMatrix("diagonally_dominant", kN, dtype_);
  ComplexMatrix a = before;
  const ComplexMatrix noise = RandomComplex(kN, kN, 8);
  for (size_t e = 0; e < a.size(); ++e) a[e] *= 1.0 + 1e-5 * noise[e];
  a = Rounded(a, dtype_);
  FactorRequest cold_request = Request("icmpp");
  cold_request.parameters.pivoting = PivotCriterion{.rule = PivotRule::kInterval};
  ASSERT_OK_AND_ASSIGN(const Factorization cold, runner_->FactorComplex(a, kN, cold_request));
  for (const char* from : {"getrf", "pcmpp", "icmpp"}) {
    SCOPED_TRACE(from);
    ASSERT_OK_AND_ASSIGN(const Factorization start,
                         runner_->FactorComplex(before, kN, Request(from)));
    FactorRequest request = Request("icmpp");
    request.parameters.start = start.view();
    request.parameters.tolerance = RealOf(dtype_) == DType::kFloat32 ? 1e-6 : 1e-14;
    ASSERT_OK_AND_ASSIGN(const Factorization warm, runner_->FactorComplex(a, kN, request));
    EXPECT_TRUE(warm.summary.iterations->warm);
    EXPECT_LT(warm.summary.iterations->total_sweeps, cold.summary.iterations->total_sweeps);
    EXPECT_LT(*warm.summary.quality, kThreshold);
    CheckSolves(a, kN, warm);
  }
}

TEST_P(GpuComplexJobsTest, IterativeMethodsReportProgressAndStop) {
  constexpr int64_t kN = 1500;
  const ComplexMatrix a = Rounded(RandomComplex(kN, kN, 9), dtype_);
  int64_t columns = 0;
  const auto stop = [&] {
    columns = runner_->context().report().ColumnsDone();
    return columns > 0;  // stops only while the kernels run
  };
  for (const char* method : {"icmpp", "pcmpp"}) {
    columns = 0;
    EXPECT_THAT(runner_->FactorComplex(a, kN, Request(method), stop),
                FailsWith(absl::StatusCode::kCancelled, "stopped"))
        << method;
    EXPECT_GT(columns, 0) << method;
    EXPECT_LT(columns, kN) << method;
    // The context is still usable.
    Check(Request(method), ComplexGalleryNamed("complex_random"), 129);
  }
}

TEST_P(GpuComplexJobsTest, GaussJordanSolvesAndVerifies) {
  constexpr int64_t kN = 140;
  constexpr int64_t kNrhs = 4;
  const ComplexMatrix a = GalleryMatrix("complex_random", kN, dtype_);
  const ComplexMatrix b = Rounded(RandomComplex(kN, kNrhs, 5), dtype_);
  for (const Layout layout : {Layout::kColumnMajor, Layout::kRowMajor}) {
    DirectSolveOptions options;
    ASSERT_OK_AND_ASSIGN(options.solver, FindDirectSolver(Gpu(), "gauss_jordan", dtype_));
    options.dtype = dtype_;
    ASSERT_OK_AND_ASSIGN(Buffer a_upload, runner_->Upload(Packed(a, kN, kN, dtype_, layout)));
    ASSERT_OK_AND_ASSIGN(Buffer b_upload, runner_->Upload(Packed(b, kN, kNrhs, dtype_, layout)));
    ASSERT_OK_AND_ASSIGN(const DirectSolvePlan plan,
                         PlanDirectSolve(options, {nullptr, dtype_, layout, kN, kN},
                                         {nullptr, dtype_, layout, kN, kNrhs}));
    std::vector<std::byte> out(plan.delivered.bytes());
    ASSERT_OK_AND_ASSIGN(
        const DirectSolveSummary summary,
        SolveDirectly(runner_->context(), plan, std::move(a_upload), std::move(b_upload),
                      out.data(), JobRunner::NeverStop(), runner_->timings()));
    const ComplexMatrix x = Unpacked<Complex>(out.data(), plan.delivered);
    EXPECT_LT(SolveRatio(a, kN, Op::kNone, x, b, kNrhs, dtype_), kThreshold);
    const double error = BackwardError(a, kN, Op::kNone, x, b, kNrhs);
    EXPECT_NEAR(*summary.backward_error, error, 1e-15 + 1e-6 * error);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, GpuComplexJobsTest,
                         ::testing::Values(DType::kComplex64, DType::kComplex128),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

}  // namespace
}  // namespace crout::testing::complex_jobs_test
