// SPDX-License-Identifier: Apache-2.0

// Tests Schur complements against their definition, and the factors returned with them.
#include "kernels/jobs/schur.h"

#include <cmath>
#include <limits>

#include "kernels/jobs/factorize.h"
#include "kernels/numerics/schur_probe.h"
#include "tests/support/fakes/fake_device.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::schur_test {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

struct SchurRequest {
  FactorRequest factor;  // type and layout of A, and how to factor A11
  int64_t leading = 0;
  std::string solver = "auto";
  Layout layout = Layout::kColumnMajor;  // layout of S
};

struct Complement {
  Factorization factor;
  std::optional<SchurSummary> summary;
  HostMatrix s;
  bool written = false;
};

HostMatrix BlockOf(const HostMatrix& a, int64_t n, int64_t row, int64_t col, int64_t rows,
                   int64_t cols) {
  HostMatrix block;
  for (int64_t j = col; j < col + cols; ++j) {
    for (int64_t i = row; i < row + rows; ++i) block.push_back(a[i + j * n]);
  }
  return block;
}

class SchurTest : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_EQ(memory_.live_bytes(), 0u);
    EXPECT_EQ(memory_.freed_in_use(), 0);
  }

  absl::StatusOr<SchurOptions> Options(const SchurRequest& request, int64_t n) const;
  absl::StatusOr<Complement> Compute(const HostMatrix& a, int64_t n, const SchurRequest& request,
                                     StopRequested stop = JobRunner::NeverStop());
  // Returns the distance of S from its definition, divided by the permitted error for the type of
  // the factor.
  double Ratio(const HostMatrix& a, int64_t n, const SchurRequest& request,
               const Complement& complement);

  FakeDevice device_;
  CountingResource& memory_ = device_.counting_memory();
  JobRunner runner_{device_};
  KernelTimings timings_;
  int fault_ = -1;  // index of the allocation that fails
};

absl::StatusOr<SchurOptions> SchurTest::Options(const SchurRequest& request, int64_t n) const {
  SchurOptions options;
  auto factor = runner_.Options(request.factor, request.leading);
  if (!factor.ok()) return factor.status();
  options.factor = *factor;
  FactorSummary expected;
  expected.unit_diagonal = factor->algorithm->traits().unit_diagonal;
  SolveRequest solve;
  solve.solver = request.solver;
  auto solver = runner_.Options(solve, expected, n - request.leading);
  if (!solver.ok()) return solver.status();
  options.solver = solver->solver;
  options.leading = request.leading;
  options.layout = request.layout;
  return options;
}

absl::StatusOr<Complement> SchurTest::Compute(const HostMatrix& a, int64_t n,
                                              const SchurRequest& request, StopRequested stop) {
  const FactorRequest& factor = request.factor;
  const auto options = Options(request, n);
  if (!options.ok()) return options.status();
  const PackedMatrix shape{nullptr, factor.matrix_dtype, factor.layout, n, n};
  const auto plan = PlanSchur(*options, shape);
  if (!plan.ok()) return plan.status();
  const size_t before = memory_.live_bytes();
  memory_.ResetPeak();
  Buffer upload = *runner_.Upload(Packed(a, n, n, factor.matrix_dtype, factor.layout));
  const PackedMatrix& s = plan->complement;
  constexpr std::byte kUntouched{0x5a};
  std::vector<std::byte> out(s.bytes(), kUntouched);
  if (fault_ >= 0) memory_.FailAllocations(1, fault_);
  auto result = ComputeSchurComplement(runner_.context(), *plan, std::move(upload), out.data(),
                                       stop, timings_);
  memory_.FailAllocations(0);
  EXPECT_LE(memory_.peak_bytes() - before, plan->bytes.peak);
  if (!result.ok()) return result.status();
  EXPECT_LE(result->factor.parts.bytes(), plan->bytes.kept);
  EXPECT_EQ(memory_.live_bytes() - before, result->factor.parts.bytes());
  const bool written = out != std::vector<std::byte>(out.size(), kUntouched);
  return Complement{std::move(result->factor), result->complement, Unpacked(out.data(), s),
                    written};
}

double SchurTest::Ratio(const HostMatrix& a, int64_t n, const SchurRequest& request,
                        const Complement& complement) {
  const int64_t k = request.leading;
  const int64_t m = n - k;
  // Solves A11 X = A12 with a float64 factor of A11 alone, then multiplies in long double.
  HostMatrix product(m * m, 0.0);
  if (k > 0) {
    const auto factor = runner_.Factor(BlockOf(a, n, 0, 0, k, k), k, {});
    SolveRequest refined;
    refined.max_refinement_steps = 2;
    const auto x = runner_.Solve(*factor, BlockOf(a, n, 0, k, k, m), m, refined);
    for (int64_t j = 0; j < m; ++j) {
      for (int64_t i = 0; i < m; ++i) {
        long double sum = 0;
        for (int64_t l = 0; l < k; ++l) sum += a[k + i + l * n] * (long double){x->x[l + j * k]};
        product[i + j * m] = static_cast<double>(sum);
      }
    }
  }
  double error = 0;
  double scale = 0;
  for (int64_t j = 0; j < m; ++j) {
    for (int64_t i = 0; i < m; ++i) {
      const double expected = a[k + i + (k + j) * n] - product[i + j * m];
      error = std::max(error, std::abs(complement.s[i + j * m] - expected));
      scale = std::max({scale, std::abs(product[i + j * m]), std::abs(expected)});
    }
  }
  const bool low = request.factor.factor_dtype == DType::kFloat32 ||
                   request.factor.matrix_dtype == DType::kFloat32;
  return scale == 0 ? error
                    : error / (scale * UnitRoundoff(low ? DType::kFloat32 : DType::kFloat64));
}

TEST_F(SchurTest, MatchesHandComputedComplements) {
  // For [2 4; 1 5], S = 5 - 1 * 4 / 2.
  SchurRequest request;
  request.leading = 1;
  ASSERT_OK_AND_ASSIGN(const Complement one, Compute({2, 1, 4, 5}, 2, request));
  EXPECT_EQ(one.s, (HostMatrix{3}));
  EXPECT_EQ(one.factor.summary.n, 1);
  EXPECT_EQ(one.factor.summary.norm_one, 2);
  // A11 = [0 2; 4 0], A12 = [2 4; 8 4], A21 = [1 1; 0 1], A22 = [5 5; 5 5]: X = [2 1; 1 2].
  const HostMatrix a = {0, 4, 1, 0, 2, 0, 1, 1, 2, 8, 5, 5, 4, 4, 5, 5};
  request.leading = 2;
  ASSERT_OK_AND_ASSIGN(const Complement two, Compute(a, 4, request));
  EXPECT_EQ(two.s, (HostMatrix{2, 4, 2, 3}));
  request.layout = Layout::kRowMajor;
  ASSERT_OK_AND_ASSIGN(const Complement rows, Compute(a, 4, request));
  EXPECT_EQ(rows.s, two.s);
}

TEST_F(SchurTest, SupportsEveryTypeLayoutAndAlgorithm) {
  constexpr int64_t kN = 40;
  HostMatrix a = Rounded(RandomMatrix(kN, kN, 1), DType::kFloat32);
  for (int64_t i = 0; i < kN; ++i) a[i * (kN + 1)] += 4;
  for (int which = 0; which < 64; ++which) {
    SCOPED_TRACE(which);
    SchurRequest request;
    request.leading = 23;
    request.factor.algorithm = which & 1 ? "cmpp" : "getrf";
    request.factor.matrix_dtype = which & 2 ? DType::kFloat32 : DType::kFloat64;
    request.factor.factor_dtype = which & 4 ? DType::kFloat32 : DType::kFloat64;
    request.factor.layout = which & 8 ? Layout::kRowMajor : Layout::kColumnMajor;
    request.layout = which & 16 ? Layout::kRowMajor : Layout::kColumnMajor;
    request.factor.equilibrate = which & 32 ? EquilibrateMode::kOn : EquilibrateMode::kOff;
    ASSERT_OK_AND_ASSIGN(const Complement complement, Compute(a, kN, request));
    EXPECT_LT(Ratio(a, kN, request, complement), 10 * kThreshold);
  }
  EXPECT_GT(timings_.factor, 0);
  EXPECT_GT(timings_.solve, 0);
  EXPECT_GT(timings_.device_to_host, 0);
}

TEST_F(SchurTest, SupportsEverySizeOfLeadingBlock) {
  for (const int64_t n : {0, 1, 2, 3, 33}) {
    HostMatrix a = RandomMatrix(n, n, 1);
    for (int64_t i = 0; i < n; ++i) a[i * (n + 1)] += 4;
    for (int64_t k = 0; k <= n; ++k) {
      SCOPED_TRACE(k);
      SchurRequest request;
      request.leading = k;
      request.factor.layout = k % 2 == 0 ? Layout::kRowMajor : Layout::kColumnMajor;
      ASSERT_OK_AND_ASSIGN(const Complement complement, Compute(a, n, request));
      EXPECT_EQ(complement.factor.summary.n, k);
      EXPECT_LT(Ratio(a, n, request, complement), 10 * kThreshold);
      if (k == 0) {
        EXPECT_EQ(complement.s, a);
      }
    }
  }
}

TEST_F(SchurTest, RatioRejectsWrongComplement) {
  const HostMatrix a = {2, 1, 4, 5};
  SchurRequest request;
  request.leading = 1;
  ASSERT_OK_AND_ASSIGN(Complement complement, Compute(a, 2, request));
  complement.s[0] *= 1 + 1e-12;
  EXPECT_GT(Ratio(a, 2, request, complement), 10 * kThreshold);
}

TEST_F(SchurTest, ReturnsFactorOfLeadingBlock) {
  constexpr int64_t kN = 30;
  constexpr int64_t kK = 17;
  const HostMatrix a = RandomMatrix(kN, kN, 3);
  const HostMatrix a11 = BlockOf(a, kN, 0, 0, kK, kK);
  SchurRequest request;
  request.leading = kK;
  request.factor.condition = request.factor.determinant = true;
  for (const EquilibrateMode mode : {EquilibrateMode::kOff, EquilibrateMode::kOn}) {
    for (const bool keep : {true, false}) {
      request.factor.equilibrate = mode;
      request.factor.keep_matrix = keep;
      ASSERT_OK_AND_ASSIGN(const Complement complement, Compute(a, kN, request));
      const Factorization& factor = complement.factor;
      ASSERT_OK_AND_ASSIGN(const Factorization expected, runner_.Factor(a11, kK, request.factor));
      EXPECT_EQ(factor.parts.bytes(), expected.parts.bytes());
      EXPECT_EQ(factor.summary.norm_one, expected.summary.norm_one);
      EXPECT_EQ(factor.summary.pivot_growth, expected.summary.pivot_growth);
      EXPECT_EQ(*factor.summary.rcond, *expected.summary.rcond);
      EXPECT_EQ(*factor.summary.det_log_abs, *expected.summary.det_log_abs);
      SolveRequest solve;
      solve.verify = keep;
      const HostMatrix b = RandomMatrix(kK, 2, 4);
      ASSERT_OK_AND_ASSIGN(const Solution solution, runner_.Solve(factor, b, 2, solve));
      EXPECT_LT(SolveRatio(a11, kK, Op::kNone, solution.x, b, 2, DType::kFloat64), kThreshold);
      ASSERT_EQ(solution.summary.backward_error.has_value(), keep);
      EXPECT_LT(solution.summary.backward_error.value_or(0), 1e-14);
    }
  }
}

TEST_F(SchurTest, ReportsTheAccuracyOfS) {
  constexpr int64_t kN = 60;
  HostMatrix a = RandomMatrix(kN, kN, 3);
  SchurRequest request;
  request.leading = 25;
  for (const EquilibrateMode mode : {EquilibrateMode::kOff, EquilibrateMode::kOn}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      for (const Layout layout : {Layout::kColumnMajor, Layout::kRowMajor}) {
        request.factor.equilibrate = mode;
        request.factor.factor_dtype = dtype;
        request.layout = request.factor.layout = layout;
        ASSERT_OK_AND_ASSIGN(const Complement good, Compute(a, kN, request));
        EXPECT_LT(good.summary->backward_error, 10 * UnitRoundoff(dtype));
        EXPECT_GT(good.summary->backward_error, UnitRoundoff(dtype) / 1000);
        EXPECT_FALSE(good.summary->is_poor);
        EXPECT_LT(good.summary->growth, 100);
      }
    }
  }
  // A small pivot, which partial pivoting would avoid.
  a[0] = 1e-10;
  request.factor = {};
  request.factor.algorithm = "cm";
  ASSERT_OK_AND_ASSIGN(const Complement poor, Compute(a, kN, request));
  EXPECT_GT(poor.summary->backward_error, 1e-9);
  EXPECT_TRUE(poor.summary->is_poor);
  EXPECT_TRUE(poor.factor.summary.is_poor());
  EXPECT_EQ(poor.summary->growth, poor.factor.summary.pivot_growth);
  EXPECT_GT(poor.summary->growth, 1e7);
}

TEST_F(SchurTest, ReportsPoorComplementIfLeadingBlockIsNearlySingular) {
  // A skew-symmetric matrix of odd order is singular.
  constexpr int64_t kK = 9;
  constexpr int64_t kN = 14;
  HostMatrix a = RandomMatrix(kN, kN, 4);
  for (int64_t j = 0; j < kK; ++j) {
    a[j + j * kN] = 0;
    for (int64_t i = 0; i < j; ++i) a[j + i * kN] = -a[i + j * kN];
  }
  SchurRequest request;
  request.leading = kK;
  ASSERT_OK_AND_ASSIGN(const Complement found, Compute(a, kN, request));
  ASSERT_EQ(found.factor.summary.info, 0);
  EXPECT_LT(found.summary->backward_error, 1e-13);
  EXPECT_GT(found.summary->growth, 1e12);
  EXPECT_TRUE(found.summary->is_poor);
  EXPECT_TRUE(found.factor.summary.is_nearly_singular());
}

TEST_F(SchurTest, ReportsGrowthInS) {
  SchurRequest request;
  request.leading = 1;
  // S = 1 - 1e6, while A11 has no growth.
  ASSERT_OK_AND_ASSIGN(const Complement large, Compute({1e-3, 1e2, 1e1, 1}, 2, request));
  EXPECT_EQ(large.factor.summary.pivot_growth, 1);
  EXPECT_NEAR(large.summary->growth, 1e4, 1e-1);
  EXPECT_FALSE(large.summary->is_poor);
  // S overflows.
  ASSERT_OK_AND_ASSIGN(const Complement lost, Compute({1e-300, 1e300, 1e300, 1}, 2, request));
  EXPECT_EQ(lost.summary->growth, INFINITY);
  EXPECT_TRUE(std::isnan(lost.summary->backward_error));
  EXPECT_TRUE(lost.summary->is_poor);
  // Zeros and entries near the end of the range have the error 0.
  ASSERT_OK_AND_ASSIGN(const Complement zero, Compute({2, 0, 0, 0}, 2, request));
  EXPECT_EQ(zero.summary->backward_error, 0);
  request.leading = 0;
  ASSERT_OK_AND_ASSIGN(const Complement whole, Compute({1e308, -1e308, 1e308, 1e308}, 2, request));
  EXPECT_EQ(whole.summary->backward_error, 0);
  EXPECT_EQ(whole.summary->growth, 1);
  request.leading = 2;
  ASSERT_OK_AND_ASSIGN(const Complement none, Compute({1, 0, 0, 1}, 2, request));
  EXPECT_FALSE(none.summary.has_value());
}

TEST_F(SchurTest, ProbeDetectsWrongXAndWrongS) {
  constexpr int64_t kN = 5;
  constexpr int64_t kK = 2;
  ExecutionContext& context = runner_.context();
  HostMatrix a = RandomMatrix(kN, kN, 6);
  ASSERT_OK(context.ops().Import(
      {reinterpret_cast<const std::byte*>(a.data()), DType::kFloat64, Layout::kColumnMajor, kN, kN},
      AsAny({a.data(), kN, kN, kN})));
  MatrixStats stats = context.report().matrix;
  const auto error = [&](double wrong_x, double wrong_s) {
    HostMatrix x(kK * (kN - kK));
    HostMatrix s((kN - kK) * (kN - kK));
    const double det = a[0] * a[1 + kN] - a[1] * a[kN];
    for (int64_t j = kK; j < kN; ++j) {
      double* const column = x.data() + kK * (j - kK);
      column[0] = (a[j * kN] * a[1 + kN] - a[1 + j * kN] * a[kN]) / det;
      column[1] = (a[1 + j * kN] * a[0] - a[j * kN] * a[1]) / det;
      for (int64_t i = kK; i < kN; ++i) {
        s[i - kK + (j - kK) * (kN - kK)] = a[i + j * kN] - a[i] * column[0] - a[i + kN] * column[1];
      }
    }
    x.back() += wrong_x;
    s.back() += wrong_s;
    std::vector<double> work(kSchurProbeVectors * kN, NAN);
    SchurProbe probe(context, stats, DType::kFloat64, kN, kK,
                     reinterpret_cast<std::byte*>(work.data()));
    EXPECT_OK(probe.Start(AsAny({a.data(), kN, kN, kN}), AsAny({x.data(), kK, kN - kK, kK})));
    EXPECT_OK(probe.Finish(AsAny({s.data(), kN - kK, kN - kK, kN - kK})));
    return probe.BackwardError().value_or(-1);
  };
  EXPECT_LT(error(0, 0), 1e-14);
  EXPECT_GT(error(1e-10, 0), 1e-12);
  EXPECT_GT(error(0, 1e-10), 1e-12);
  EXPECT_TRUE(std::isnan(error(NAN, 0)));
  EXPECT_TRUE(std::isnan(error(0, INFINITY)));
  // The sum of a row may overflow although its entries do not.
  stats.norm_inf = INFINITY;
  EXPECT_GT(error(1e-10, 0), 0);
}

TEST_F(SchurTest, ReportsSingularLeadingBlockWithoutS) {
  SchurRequest request;
  request.leading = 2;
  const HostMatrix a = {1, 1, 7, 1, 1, 7, 7, 7, 9};
  ASSERT_OK_AND_ASSIGN(const Complement complement, Compute(a, 3, request));
  EXPECT_EQ(complement.factor.summary.info, 2);
  EXPECT_FALSE(complement.summary.has_value());
  EXPECT_FALSE(complement.written);
  request.leading = 1;  // A is singular, but A11 is not
  ASSERT_OK_AND_ASSIGN(const Complement fine, Compute({1, 1, 1, 1}, 2, request));
  EXPECT_EQ(fine.factor.summary.info, 0);
  EXPECT_EQ(fine.s, (HostMatrix{0}));
}

TEST_F(SchurTest, RefusesNonFiniteAndOverflowingEntries) {
  SchurRequest request;
  request.leading = 1;
  for (const Layout layout : {Layout::kColumnMajor, Layout::kRowMajor}) {
    request.factor.layout = layout;
    EXPECT_THAT(Compute({1, 2, 3, NAN}, 2, request),
                FailsWith(kInvalid, "matrix has a NaN or Inf at row 1, column 1"));
    EXPECT_THAT(Compute({1, -INFINITY, 3, 1}, 2, request),
                FailsWith(kInvalid, "matrix has a NaN or Inf at row 1, column 0"));
  }
  request.factor.factor_dtype = DType::kFloat32;
  EXPECT_THAT(Compute({1e200, 1, 1, 1}, 2, request),
              FailsWith(kInvalid, "overflows f32 at row 0, column 0"));
  EXPECT_THAT(Compute({1, 1, 1e200, 1}, 2, request),
              FailsWith(kInvalid, "right of the leading block overflows f32"));
  // Blocks that only the product uses are not converted to the type of the factor.
  ASSERT_OK_AND_ASSIGN(const Complement large, Compute({1, 1e200, 2, 3e200}, 2, request));
  EXPECT_EQ(large.s, (HostMatrix{3e200 - 2 * 1e200}));
  request.factor.equilibrate = EquilibrateMode::kOn;
  ASSERT_OK_AND_ASSIGN(const Complement scaled, Compute({1e200, 1, 1e200, 3}, 2, request));
  EXPECT_NEAR(scaled.s[0], 2, 1e-6);
}

TEST_F(SchurTest, RefusesInvalidShapesAndOptions) {
  const HostMatrix a = {1, 0, 0, 1};
  SchurRequest request;
  request.leading = 3;
  EXPECT_THAT(Compute(a, 2, request), FailsWith(kInvalid, "leading block has order 3"));
  request.leading = 1;
  ASSERT_OK_AND_ASSIGN(SchurOptions options, Options(request, 2));
  const auto compute = [&](int64_t rows, int64_t cols) {
    Buffer upload = *runner_.Upload(std::vector<std::byte>(32));
    return ComputeSchurComplement(runner_.context(), std::move(upload),
                                  {nullptr, DType::kFloat64, Layout::kColumnMajor, rows, cols},
                                  options, nullptr, JobRunner::NeverStop(), timings_);
  };
  EXPECT_THAT(compute(2, 3), FailsWith(kInvalid, "not square"));
  EXPECT_THAT(compute(3, 3), FailsWith(kInvalid, "its shape needs 72"));
  options.leading = -1;
  EXPECT_THAT(compute(2, 2), FailsWith(kInvalid, "leading block has order -1"));
  options.leading = 1;
  options.solver = nullptr;
  EXPECT_THAT(compute(2, 2), FailsWith(kInvalid, "no solver"));
  request.factor.algorithm = "cmpp";  // unit diagonal in U
  ASSERT_OK_AND_ASSIGN(options, Options(request, 2));
  for (const auto& solver : device_.solvers()) {
    if (solver->Supports(UnitDiagonal::kU)) continue;
    options.solver = solver.get();
    EXPECT_THAT(compute(2, 2),
                FailsWith(absl::StatusCode::kFailedPrecondition, "cannot use factors of 'cmpp'"));
  }
}

TEST_F(SchurTest, StopsBetweenPhases) {
  const HostMatrix a = RandomMatrix(6, 6, 1);
  SchurRequest request;
  request.leading = 3;
  int polls = 0;
  int allowed = 0;
  const auto stop = [&] { return polls++ >= allowed; };
  for (;; ++allowed) {
    polls = 0;
    const auto result = Compute(a, 6, request, stop);
    if (result.ok()) break;
    EXPECT_EQ(result.status().code(), absl::StatusCode::kCancelled);
    EXPECT_EQ(memory_.live_bytes(), 0u);
  }
  EXPECT_GE(allowed, 4);
}

TEST_F(SchurTest, ResetsProgressOfPreviousJob) {
  const HostMatrix a = RandomMatrix(6, 6, 1);
  SchurRequest request;
  request.leading = 3;
  DeviceReport& report = runner_.context().report();
  report.ReportColumns(4000);
  int64_t most = 0;
  const auto ask = [&] {
    most = std::max(most, report.ColumnsDone());
    return false;
  };
  ASSERT_OK(Compute(a, 6, request, ask));
  EXPECT_LE(most, request.leading);
}

TEST_F(SchurTest, StaysWithinItsPlanAndSurvivesFailedAllocations) {
  const HostMatrix a = RandomMatrix(12, 12, 1);
  for (const Layout layout : {Layout::kColumnMajor, Layout::kRowMajor}) {
    SchurRequest request;
    request.leading = 7;
    request.factor.layout = layout;
    request.factor.factor_dtype = DType::kFloat32;
    request.factor.equilibrate = EquilibrateMode::kOn;
    for (fault_ = 0;; ++fault_) {
      const auto result = Compute(a, 12, request);
      if (result.ok()) break;
      EXPECT_THAT(result, FailsWith(absl::StatusCode::kResourceExhausted, "bytes"));
      EXPECT_EQ(memory_.live_bytes(), 0u);
    }
    EXPECT_GE(fault_, 7);
    fault_ = -1;
    ASSERT_OK_AND_ASSIGN(const SchurOptions options, Options(request, 12));
    const PackedMatrix shape{nullptr, DType::kFloat64, Layout::kColumnMajor, 12, 12};
    ASSERT_OK_AND_ASSIGN(const SchurPlan plan, PlanSchur(options, shape));
    ASSERT_OK_AND_ASSIGN(const Complement complement, Compute(a, 12, request));
    // The plan declares at most twice the bytes in use.
    EXPECT_GE(2 * memory_.peak_bytes(), plan.bytes.peak);
  }
}

}  // namespace
}  // namespace crout::testing::schur_test
