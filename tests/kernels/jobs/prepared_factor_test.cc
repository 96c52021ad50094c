// SPDX-License-Identifier: Apache-2.0

// Tests factors prepared for a solver: when the solver is used, its fallback, and its memory.
#include <algorithm>

#include "kernels/algorithm_registry.h"
#include "kernels/jobs/factorize.h"
#include "kernels/jobs/solve.h"
#include "tests/support/fakes/fake_device.h"
#include "tests/support/fakes/preparing_solver.h"
#include "tests/support/matrices/gallery.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::prepared_factor_test {
namespace {

constexpr int64_t kN = 12;
constexpr PackedMatrix kShape{nullptr, DType::kFloat64, Layout::kColumnMajor, kN, kN};

bool Never() { return false; }

class PreparedFactorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(context_, device_.CreateContext());
    ASSERT_OK_AND_ASSIGN(options_.algorithm, FindAlgorithm(device_, "getrf", DType::kFloat64, kN));
    options_.equilibrate = EquilibrateMode::kOff;
    options_.prepare = FindSolverToPrepare(device_, UnitDiagonal::kL, DType::kFloat64);
    ASSERT_NE(options_.prepare, nullptr);
  }

  static HostMatrix Diagonal(double last) {
    HostMatrix a(kN * kN, 0.0);
    for (int64_t i = 0; i < kN; ++i) a[i + i * kN] = i == kN - 1 ? last : 1;
    return a;
  }

  Buffer Put(const HostMatrix& values) {
    const std::vector<std::byte> bytes = Packed(values, kN, values.size() / kN, DType::kFloat64);
    Buffer buffer = *device_.memory().Allocate(bytes.size());
    std::copy(bytes.begin(), bytes.end(), buffer.data());
    return buffer;
  }

  Factorization Factor(const HostMatrix& a) {
    KernelTimings timings;
    return *Factorize(*context_, Put(a), kShape, options_, Never, timings);
  }

  absl::StatusOr<SolveSummary> SolveOnes(const Factorization& factor, const SolveOptions& options) {
    PackedMatrix shape = kShape;
    shape.cols = 1;
    HostMatrix x(kN);
    KernelTimings timings;
    return Solve(*context_, factor, Put(HostMatrix(kN, 1.0)), shape, options,
                 reinterpret_cast<std::byte*>(x.data()), Never, timings);
  }

  SolveOptions With(const TriangularSolver* fallback) const {
    SolveOptions options;
    options.solver = options_.prepare;
    options.fallback = fallback;
    return options;
  }
  const TriangularSolver* Getrs() const {
    return *FindSolver(device_, "getrs", UnitDiagonal::kL, DType::kFloat64, kN, 1);
  }

  explicit PreparedFactorTest(double error = 0)
      : device_({.prepares = true, .prepared_error = error}) {}

  FakeDevice device_;
  std::unique_ptr<ExecutionContext> context_;
  FactorizeOptions options_;
};

TEST_F(PreparedFactorTest, AutoChoosesPreparingSolverOnlyForPreparedFactors) {
  FactorSummary factor;
  factor.n = kN;
  ASSERT_OK_AND_ASSIGN(const TriangularSolver* plain, FindSolver(device_, "auto", factor, 1));
  EXPECT_FALSE(plain->needs_preparation());
  factor.preparation.emplace();
  ASSERT_OK_AND_ASSIGN(const TriangularSolver* prepared, FindSolver(device_, "auto", factor, 1));
  EXPECT_EQ(prepared, options_.prepare);
}

TEST_F(PreparedFactorTest, RefusesNamedSolverForUnpreparedFactor) {
  EXPECT_THAT(FindSolver(device_, "crout_solve", UnitDiagonal::kL, DType::kFloat64, kN, 1),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        "'crout_solve' cannot use a factor that was not prepared for this solver"));
}

TEST_F(PreparedFactorTest, PreparesNothingWithoutPreparingSolver) {
  FakeDevice plain;
  EXPECT_EQ(FindSolverToPrepare(plain, UnitDiagonal::kL, DType::kFloat64), nullptr);
}

TEST_F(PreparedFactorTest, PreparesNothingForIncompatibleSolver) {
  // The solver of the fake device is based on getrs, which requires the unit diagonal in L.
  EXPECT_EQ(FindSolverToPrepare(device_, UnitDiagonal::kU, DType::kFloat64), nullptr);
}

TEST_F(PreparedFactorTest, SolvesWithPreparedFactor) {
  const Factorization factor = Factor(Diagonal(2));
  ASSERT_TRUE(factor.summary.preparation.has_value());
  EXPECT_EQ(factor.summary.preparation->condition, 2);
  ASSERT_OK_AND_ASSIGN(const SolveSummary summary, SolveOnes(factor, With(Getrs())));
  EXPECT_EQ(summary.solver, "crout_solve");
  EXPECT_EQ(summary.backward_error, 0);
}

TEST_F(PreparedFactorTest, FallsBackAndReportsTheFallback) {
  const Factorization factor = Factor(Diagonal(1e-6));
  ASSERT_OK_AND_ASSIGN(const SolveSummary summary, SolveOnes(factor, With(Getrs())));
  EXPECT_EQ(summary.solver, "getrs");
  EXPECT_EQ(summary.fallback, SolverFallback::kCondition);
  EXPECT_THAT(SolveOnes(factor, With(nullptr)),
              FailsWith(absl::StatusCode::kFailedPrecondition, "not accurate"));
}

TEST_F(PreparedFactorTest, UsesLessReliableSolverOnlyForMeasuredSolves) {
  const Factorization factor = Factor(Diagonal(2 / PreparingSolver::kMeasured));
  SolveOptions options = With(Getrs());
  ASSERT_OK_AND_ASSIGN(const SolveSummary measured, SolveOnes(factor, options));
  EXPECT_EQ(measured.solver, "crout_solve");
  EXPECT_EQ(measured.fallback, SolverFallback::kNone);
  options.verify = false;
  ASSERT_OK_AND_ASSIGN(const SolveSummary unmeasured, SolveOnes(factor, options));
  EXPECT_EQ(unmeasured.solver, "getrs");
  EXPECT_EQ(unmeasured.fallback, SolverFallback::kCondition);
  // Refinement measures the error even if `verify` is false.
  options.max_refinement_steps = 1;
  ASSERT_OK_AND_ASSIGN(const SolveSummary refined, SolveOnes(factor, options));
  EXPECT_EQ(refined.solver, "crout_solve");
}

// Errors of the solves for the bound are never measured, so they need a fully reliable solver.
TEST_F(PreparedFactorTest, RequiresFullReliabilityForErrorBound) {
  SolveOptions options = With(Getrs());
  options.error_bound = true;
  ASSERT_OK_AND_ASSIGN(const SolveSummary trusted, SolveOnes(Factor(Diagonal(2)), options));
  EXPECT_EQ(trusted.solver, "crout_solve");
  const Factorization factor = Factor(Diagonal(2 / PreparingSolver::kMeasured));
  ASSERT_OK_AND_ASSIGN(const SolveSummary measured, SolveOnes(factor, options));
  EXPECT_EQ(measured.solver, "getrs");
  EXPECT_EQ(measured.fallback, SolverFallback::kCondition);
  options.fallback = nullptr;
  EXPECT_THAT(SolveOnes(factor, options),
              FailsWith(absl::StatusCode::kFailedPrecondition, "not accurate"));
}

TEST_F(PreparedFactorTest, RequiresReliabilityOfBothOperationsForErrorBound) {
  const Factorization factor = Factor(Diagonal(1e-6));
  SolveOptions options = With(Getrs());
  options.op = Op::kTranspose;
  ASSERT_OK_AND_ASSIGN(const SolveSummary transposed, SolveOnes(factor, options));
  EXPECT_EQ(transposed.solver, "crout_solve");
  options.error_bound = true;
  ASSERT_OK_AND_ASSIGN(const SolveSummary bounded, SolveOnes(factor, options));
  EXPECT_EQ(bounded.solver, "getrs");
}

TEST_F(PreparedFactorTest, RefusesUnpreparedFactor) {
  options_.prepare = nullptr;
  const Factorization factor = Factor(Diagonal(2));
  EXPECT_FALSE(factor.summary.preparation.has_value());
  SolveOptions options;
  options.solver = FindSolverToPrepare(device_, UnitDiagonal::kL, DType::kFloat64);
  options.fallback = Getrs();
  EXPECT_THAT(SolveOnes(factor, options),
              FailsWith(absl::StatusCode::kFailedPrecondition, "prepared"));
}

TEST_F(PreparedFactorTest, ReportsSingularFactorWithoutPreparingIt) {
  const Factorization factor = Factor(Diagonal(0));
  EXPECT_FALSE(factor.summary.preparation.has_value());
  EXPECT_FALSE(factor.prepared());
  EXPECT_THAT(SolveOnes(factor, With(Getrs())),
              FailsWith(absl::StatusCode::kFailedPrecondition, "singular"));
}

TEST_F(PreparedFactorTest, CountsPreparedBytesInPlanAndFactor) {
  const PackedMatrix shape{nullptr, DType::kFloat64, Layout::kColumnMajor, kN, kN};
  ASSERT_OK_AND_ASSIGN(const FactorizePlan with, PlanFactorize(options_, shape));
  const JobBytes& declared = with.bytes;
  FactorizeOptions plain = options_;
  plain.prepare = nullptr;
  ASSERT_OK_AND_ASSIGN(const FactorizePlan without, PlanFactorize(plain, shape));
  const size_t prepared = BlockBytes(*options_.prepare->PreparedBytes(DType::kFloat64, kN));
  EXPECT_EQ(declared.kept, without.bytes.kept + prepared);
  EXPECT_EQ(declared.peak, without.bytes.peak + prepared);
  const Factorization factor = Factor(Diagonal(2));
  EXPECT_EQ(factor.parts.bytes(), declared.kept);
  EXPECT_EQ(device_.counting_memory().live_bytes(), declared.kept);
}

TEST_F(PreparedFactorTest, SurvivesEvictionToHostMemory) {
  const Factorization factor = Factor(Diagonal(2));
  ASSERT_OK_AND_ASSIGN(FactorParts host,
                       CopyToHost(*context_, factor.parts, device_.staging_memory()));
  EXPECT_EQ(host.bytes(), factor.parts.bytes());
  ASSERT_OK_AND_ASSIGN(FactorParts back, CopyToDevice(*context_, host));
  const Factorization promoted{factor.summary, std::move(back)};
  ASSERT_OK_AND_ASSIGN(const SolveSummary summary, SolveOnes(promoted, With(nullptr)));
  EXPECT_EQ(summary.solver, "crout_solve");
  ASSERT_OK_AND_ASSIGN(const FactorParts download,
                       CopyForDownload(*context_, factor.parts, device_.staging_memory()));
  EXPECT_FALSE(download.Has(PartKind::kPrepared));
  EXPECT_FALSE(download.Has(PartKind::kOperand));
  EXPECT_TRUE(download[kLuPart]);
}

TEST_F(PreparedFactorTest, AcceptsOrderZero) {
  KernelTimings timings;
  ASSERT_OK_AND_ASSIGN(
      const Factorization factor,
      Factorize(*context_, Buffer(), {nullptr, DType::kFloat64, Layout::kColumnMajor, 0, 0},
                options_, Never, timings));
  SolveOptions options = With(nullptr);
  ASSERT_OK_AND_ASSIGN(
      const SolveSummary summary,
      Solve(*context_, factor, Buffer(), {nullptr, DType::kFloat64, Layout::kColumnMajor, 0, 1},
            options, nullptr, Never, timings));
  EXPECT_EQ(summary.solver, "crout_solve");
}

// The solver's results have a relative error of 1e-6.
class InaccurateSolverTest : public PreparedFactorTest {
 protected:
  static constexpr double kError = 1e-6;
  InaccurateSolverTest() : PreparedFactorTest(kError) {}
};

TEST_F(InaccurateSolverTest, ReplacesInaccurateSolutionsByFallbackSolver) {
  const Factorization factor = Factor(Diagonal(2));
  ASSERT_OK_AND_ASSIGN(const SolveSummary summary, SolveOnes(factor, With(Getrs())));
  EXPECT_EQ(summary.solver, "getrs");
  EXPECT_EQ(summary.fallback, SolverFallback::kBackwardError);
  EXPECT_EQ(summary.backward_error, 0);
}

TEST_F(InaccurateSolverTest, RefinesAndBoundsWithFallbackSolver) {
  const Factorization factor = Factor(RandomMatrix(kN, kN, 1));
  SolveOptions options = With(Getrs());
  options.verify = false;  // refinement measures the error nevertheless
  options.error_bound = true;
  options.max_refinement_steps = 2;
  ASSERT_OK_AND_ASSIGN(const SolveSummary summary, SolveOnes(factor, options));
  EXPECT_EQ(summary.fallback, SolverFallback::kBackwardError);
  EXPECT_LT(*summary.forward_error_bound, kError / 1000);
}

TEST_F(InaccurateSolverTest, PlansMemoryOfFallback) {
  const Factorization factor = Factor(Diagonal(2));
  PackedMatrix shape = kShape;
  shape.cols = 1;
  ASSERT_OK_AND_ASSIGN(const SolvePlan plan, PlanSolve(With(Getrs()), factor.summary, shape));
  device_.counting_memory().ResetPeak();
  const size_t before = device_.counting_memory().live_bytes();
  ASSERT_OK(SolveOnes(factor, With(Getrs())));
  EXPECT_LE(device_.counting_memory().peak_bytes() - before, plan.bytes.peak);
}

TEST_F(InaccurateSolverTest, ReportsLargeBackwardErrorWithoutFallbackSolver) {
  const Factorization factor = Factor(Diagonal(2));
  ASSERT_OK_AND_ASSIGN(const SolveSummary summary, SolveOnes(factor, With(nullptr)));
  EXPECT_EQ(summary.solver, "crout_solve");
  EXPECT_EQ(summary.fallback, SolverFallback::kNone);
  EXPECT_NEAR(*summary.backward_error, kError / 2, kError);
  EXPECT_GT(*summary.backward_error, kError / 10);
}

TEST_F(InaccurateSolverTest, ComparesFloat32FactorWithFloat32Roundoff) {
  options_.factor_dtype = DType::kFloat32;
  const Factorization factor = Factor(Diagonal(2));
  ASSERT_OK_AND_ASSIGN(const SolveSummary summary, SolveOnes(factor, With(Getrs())));
  EXPECT_EQ(summary.solver, "crout_solve");
}

}  // namespace
}  // namespace crout::testing::prepared_factor_test
