// SPDX-License-Identifier: Apache-2.0

// Tests jobs that solve without factors, with a direct solver that is known to be correct.
#include "kernels/jobs/direct_solve.h"

#include <cmath>
#include <limits>

#include "tests/support/fakes/fake_device.h"
#include "tests/support/fakes/plain_direct_solver.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::direct_solve_test {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64};
constexpr Layout kLayouts[] = {Layout::kColumnMajor, Layout::kRowMajor};

// The types and layouts of A and B.
struct Arrival {
  DType matrix = DType::kFloat64;
  Layout matrix_layout = Layout::kColumnMajor;
  DType rhs = DType::kFloat64;
  Layout rhs_layout = Layout::kColumnMajor;
};

struct Result {
  DirectSolveSummary summary;
  HostMatrix x;
  bool written = false;
};

class DirectSolveTest : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_EQ(memory_.live_bytes(), 0u);
    EXPECT_EQ(memory_.freed_in_use(), 0);
  }

  absl::StatusOr<Result> Solve(const HostMatrix& a, int64_t n, const HostMatrix& b, int64_t nrhs,
                               const Arrival& arrival, StopRequested stop = JobRunner::NeverStop());

  static DirectSolveOptions Options(DType dtype = DType::kFloat64, bool verify = true) {
    static const PlainDirectSolver solver;
    return {&solver, dtype, verify};
  }

  FakeDevice device_;
  CountingResource& memory_ = device_.counting_memory();
  JobRunner runner_{device_};
  KernelTimings timings_;
  DirectSolveOptions options_ = Options();
  int fault_ = -1;  // index of the allocation that fails
};

absl::StatusOr<Result> DirectSolveTest::Solve(const HostMatrix& a, int64_t n, const HostMatrix& b,
                                              int64_t nrhs, const Arrival& arrival,
                                              StopRequested stop) {
  const PackedMatrix matrix{nullptr, arrival.matrix, arrival.matrix_layout, n, n};
  const PackedMatrix rhs{nullptr, arrival.rhs, arrival.rhs_layout, n, nrhs};
  const auto plan = PlanDirectSolve(options_, matrix, rhs);
  if (!plan.ok()) return plan.status();
  memory_.ResetPeak();
  Buffer a_upload = *runner_.Upload(Packed(a, n, n, matrix.dtype, matrix.layout));
  Buffer b_upload = *runner_.Upload(Packed(b, n, nrhs, rhs.dtype, rhs.layout));
  constexpr std::byte kUntouched{0x5a};
  std::vector<std::byte> out(rhs.bytes(), kUntouched);
  if (fault_ >= 0) memory_.FailAllocations(1, fault_);
  auto summary = SolveDirectly(runner_.context(), *plan, std::move(a_upload), std::move(b_upload),
                               out.data(), stop, timings_);
  EXPECT_LE(memory_.peak_bytes(), plan->bytes.peak);
  EXPECT_EQ(plan->bytes.kept, 0u);
  if (!summary.ok()) return summary.status();
  if (n > 0) {
    EXPECT_EQ(memory_.peak_bytes(), plan->bytes.peak);
  }
  const bool written = out != std::vector<std::byte>(out.size(), kUntouched);
  return Result{*std::move(summary), Unpacked(out.data(), rhs), written};
}

TEST_F(DirectSolveTest, SupportsEveryTypeLayoutAndVerification) {
  constexpr int64_t kN = 33;
  constexpr int64_t kNrhs = 4;
  const HostMatrix a = Rounded(RandomMatrix(kN, kN, 1), DType::kFloat32);
  const HostMatrix b = Rounded(RandomMatrix(kN, kNrhs, 2), DType::kFloat32);
  for (int which = 0; which < 64; ++which) {
    SCOPED_TRACE(which);
    const Arrival arrival{kTypes[which & 1], kLayouts[which >> 1 & 1], kTypes[which >> 2 & 1],
                          kLayouts[which >> 3 & 1]};
    options_ = Options(kTypes[which >> 4 & 1], which >> 5);
    ASSERT_OK_AND_ASSIGN(const Result result, Solve(a, kN, b, kNrhs, arrival));
    const bool low = options_.dtype == DType::kFloat32 || arrival.rhs == DType::kFloat32;
    const DType accuracy = low ? DType::kFloat32 : DType::kFloat64;
    EXPECT_LT(SolveRatio(a, kN, Op::kNone, result.x, b, kNrhs, accuracy), kThreshold);
    const DirectSolveSummary& summary = result.summary;
    EXPECT_EQ(summary.info, 0);
    EXPECT_EQ(summary.n, kN);
    EXPECT_EQ(summary.solver, "gauss_jordan");
    EXPECT_EQ(summary.dtype, options_.dtype);
    EXPECT_EQ(summary.matrix_dtype, arrival.matrix);
    EXPECT_NEAR(summary.norm_one, NormOne(a, kN), 1e-12);
    EXPECT_NEAR(summary.norm_inf, NormInf(a, kN), 1e-12);
    ASSERT_EQ(summary.backward_error.has_value(), options_.verify);
    if (!options_.verify) continue;
    const double expected = BackwardError(a, kN, Op::kNone, result.x, b, kNrhs);
    EXPECT_NEAR(*summary.backward_error, expected, 1e-3 * expected + 1e-16);
  }
  EXPECT_GT(timings_.solve, 0);
  EXPECT_GT(timings_.refine, 0);
  EXPECT_GT(timings_.device_to_host, 0);
}

TEST_F(DirectSolveTest, SolvesHandComputedSystemAndInverts) {
  ASSERT_OK_AND_ASSIGN(const Result two, Solve({0, 2, 4, 1}, 2, {8, 4}, 1, {}));
  EXPECT_EQ(two.x, (HostMatrix{1, 2}));
  EXPECT_EQ(*two.summary.backward_error, 0);
  ASSERT_OK_AND_ASSIGN(const Result inverse, Solve({0, 2, 4, 1}, 2, {1, 0, 0, 1}, 2, {}));
  EXPECT_EQ(inverse.x, (HostMatrix{-0.125, 0.25, 0.5, 0}));
}

// The solutions are exact and small, so that only the pivots show that A is nearly singular.
TEST_F(DirectSolveTest, WarnsOfNearlySingularMatrices) {
  ASSERT_OK_AND_ASSIGN(Result result, Solve({1, 1, 1, 1 + 0x1p-52}, 2, {2, 2 + 0x1p-51}, 1, {}));
  EXPECT_EQ(*result.summary.backward_error, 0);
  EXPECT_TRUE(result.summary.accuracy_warnings.nearly_singular);
  ASSERT_OK_AND_ASSIGN(result, Solve({1, 1, 1, 1 + 0x1p-20}, 2, {2, 2 + 0x1p-20}, 1, {}));
  EXPECT_FALSE(result.summary.accuracy_warnings.nearly_singular);
}

TEST_F(DirectSolveTest, ComputesBackwardErrorIfNormsOverflow) {
  ASSERT_OK_AND_ASSIGN(const Result result,
                       Solve({1.5e308, 1e308, 1e308, 1.5e308}, 2, {1e300, 2e300}, 1, {}));
  EXPECT_EQ(result.summary.norm_inf, INFINITY);
  EXPECT_LT(*result.summary.backward_error, 1e-15);
}

TEST_F(DirectSolveTest, AcceptsEmptySystems) {
  for (const bool verify : {false, true}) {
    options_.verify = verify;
    ASSERT_OK_AND_ASSIGN(const Result empty, Solve({}, 0, {}, 3, {}));
    EXPECT_EQ(empty.summary.info, 0);
    EXPECT_EQ(empty.summary.backward_error.has_value(), verify);
    ASSERT_OK_AND_ASSIGN(const Result bare, Solve({1, 0, 0, 1}, 2, {}, 0, {}));
    EXPECT_EQ(bare.summary.norm_one, 1);
    EXPECT_EQ(bare.summary.backward_error.has_value(), verify);
    ASSERT_OK_AND_ASSIGN(const Result singular, Solve({1, 1, 1, 1}, 2, {}, 0, {}));
    EXPECT_EQ(singular.summary.info, 2);
  }
}

TEST_F(DirectSolveTest, ReportsSingularMatrixWithoutX) {
  for (const char* name : {"zero", "zero_first_column", "zero_half_columns", "zero_last_column"}) {
    const GalleryKind& kind = GalleryNamed(name);
    for (const bool verify : {false, true}) {
      options_.verify = verify;
      ASSERT_OK_AND_ASSIGN(const Result result,
                           Solve(kind.make(10), 10, HostMatrix(10, 1.0), 1, {}));
      EXPECT_EQ(result.summary.info, kind.singular_at(10));
      EXPECT_FALSE(result.written);
      EXPECT_FALSE(result.summary.backward_error);
    }
  }
}

TEST_F(DirectSolveTest, RefusesNonFiniteAndOverflowingEntries) {
  const HostMatrix a = {1, 0, 0, 1};
  const HostMatrix b = {1, 2};
  for (const Layout layout : kLayouts) {
    const Arrival arrival{DType::kFloat64, layout, DType::kFloat64, layout};
    for (const double bad : {NAN, INFINITY, -INFINITY}) {
      EXPECT_THAT(Solve({1, 0, bad, 1}, 2, b, 1, arrival),
                  FailsWith(kInvalid, "matrix has a NaN or Inf at row 0, column 1"));
      EXPECT_THAT(Solve(a, 2, {1, bad}, 1, arrival),
                  FailsWith(kInvalid, "right-hand side has a NaN or Inf at row 1, column 0"));
    }
    EXPECT_OK(Solve({1, 0, 1e200, 1}, 2, b, 1, arrival));
    options_.dtype = DType::kFloat32;
    EXPECT_THAT(Solve({1, 0, 1e200, 1}, 2, b, 1, arrival),
                FailsWith(kInvalid, "overflows f32 at row 0, column 1"));
    EXPECT_THAT(Solve(a, 2, {1, -1e39}, 1, arrival),
                FailsWith(kInvalid, "overflows f32 at row 1, column 0"));
    EXPECT_THAT(Solve({1e-60, 0, 0, 1e-60}, 2, b, 1, arrival),
                FailsWith(kInvalid, "matrix has no entry above 1e-60"));
    EXPECT_THAT(Solve(a, 2, {1e-60, 1e-60}, 1, arrival),
                FailsWith(kInvalid, "right-hand side has no entry above 1e-60"));
    options_.dtype = DType::kFloat64;
  }
}

TEST_F(DirectSolveTest, ReportsOverflowInBackwardError) {
  const double tiny = std::numeric_limits<double>::min();
  ASSERT_OK_AND_ASSIGN(const Result result, Solve({tiny}, 1, {1e300}, 1, {}));
  EXPECT_TRUE(std::isnan(*result.summary.backward_error));
  // X is within the range of float64 but overflows the type of B.
  const Arrival single{DType::kFloat64, Layout::kColumnMajor, DType::kFloat32};
  ASSERT_OK_AND_ASSIGN(const Result rounded, Solve({1e-30}, 1, {1e30}, 1, single));
  EXPECT_EQ(rounded.x[0], INFINITY);
  EXPECT_TRUE(std::isnan(*rounded.summary.backward_error));
}

TEST_F(DirectSolveTest, RefusesMismatchedShapes) {
  const PackedMatrix square{nullptr, DType::kFloat64, Layout::kColumnMajor, 2, 2};
  PackedMatrix other = square;
  const auto solve = [&](const PackedMatrix& matrix, const PackedMatrix& rhs) {
    Buffer a = *runner_.Upload(std::vector<std::byte>(32));
    Buffer b = *runner_.Upload(std::vector<std::byte>(32));
    return SolveDirectly(runner_.context(), std::move(a), matrix, std::move(b), rhs, options_,
                         nullptr, JobRunner::NeverStop(), timings_);
  };
  other.rows = 3;
  EXPECT_THAT(solve(other, square), FailsWith(kInvalid, "not square"));
  EXPECT_THAT(solve(square, other), FailsWith(kInvalid, "3 rows; the matrix has order 2"));
  other.rows = other.cols = 1;
  EXPECT_THAT(solve(other, {nullptr, DType::kFloat64, Layout::kColumnMajor, 1, 4}),
              FailsWith(kInvalid, "matrix has 32 bytes; its shape needs 8"));
  other.rows = 2;
  EXPECT_THAT(solve(square, other), FailsWith(kInvalid, "right-hand side has 32 bytes"));
  other.cols = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(solve(square, other), FailsWith(kInvalid, "overflows"));
  options_.solver = nullptr;
  EXPECT_THAT(solve(square, square), FailsWith(kInvalid, "no solver"));
}

TEST_F(DirectSolveTest, StopsAtEveryPoll) {
  const HostMatrix a = RandomMatrix(5, 5, 1);
  const HostMatrix b = RandomMatrix(5, 1, 2);
  int polls = 0;
  int allowed = 0;
  const auto stop = [&] { return polls++ >= allowed; };
  for (;; ++allowed) {
    polls = 0;
    const auto result = Solve(a, 5, b, 1, {}, stop);
    if (result.ok()) break;
    EXPECT_EQ(result.status().code(), absl::StatusCode::kCancelled);
  }
  EXPECT_GE(allowed, 8);  // polls before, between and within the phases
}

TEST_F(DirectSolveTest, SurvivesEveryFailedAllocation) {
  options_.dtype = DType::kFloat32;
  const Arrival arrival{DType::kFloat64, Layout::kRowMajor, DType::kFloat64, Layout::kRowMajor};
  for (fault_ = 0;; ++fault_) {
    const auto result = Solve(RandomMatrix(5, 5, 1), 5, RandomMatrix(5, 2, 2), 2, arrival);
    if (result.ok()) break;
    EXPECT_THAT(result, FailsWith(absl::StatusCode::kResourceExhausted, "bytes"));
    EXPECT_EQ(memory_.live_bytes(), 0u);
  }
  EXPECT_EQ(fault_, 6);
}

}  // namespace
}  // namespace crout::testing::direct_solve_test
