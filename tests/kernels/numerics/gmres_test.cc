// SPDX-License-Identifier: Apache-2.0

// Tests GMRES with an old factor in cases where refinement fails: the matrix differs much from the
// factored one, or is ill-conditioned and has a single-precision factor.
#include "kernels/numerics/gmres.h"

#include <cmath>
#include <complex>
#include <limits>
#include <tuple>
#include <utility>

#include "kernels/host/device/host_device.h"
#include "kernels/numerics/correction.h"
#include "kernels/numerics/factor_solver.h"
#include "kernels/numerics/operands.h"
#include "kernels/numerics/refinement.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::gmres_test {
namespace {

constexpr double kRoundoff = 0x1p-53;

// The vectors of op(A) X = B in host memory, which the host device uses directly.
template <class T>
struct Vectors {
  explicit Vectors(std::vector<T> rhs) : b(std::move(rhs)), x(b.size()), r(b.size()) {}

  std::vector<T> b;
  std::vector<T> x;  // 0 at first
  std::vector<T> r;
};

template <class T>
class GmresTest : public ::testing::Test {
 protected:
  using Matrix = std::vector<T>;

  static Matrix Random(int64_t rows, int64_t cols, uint64_t seed) {
    return testing::Random<T>(rows, cols, seed);
  }
  // Returns `a` with its entries, or both of their parts, changed by up to `change`.
  static Matrix Near(const Matrix& a, int64_t n, double change) {
    Matrix near = a;
    const Matrix random = Random(n, n, 77);
    for (size_t i = 0; i < a.size(); ++i) near[i] += change * random[i];
    return near;
  }
  static MatrixView<T> View(Matrix& m, int64_t n) {
    return {m.data(), n, n == 0 ? 0 : static_cast<int64_t>(m.size()) / n, std::max<int64_t>(1, n)};
  }
  static DenseOperand Dense(Matrix& a, int64_t n) {
    return {View(a, n), NormOne(a, n), NormInf(a, n)};
  }

  absl::StatusOr<Factorization> Factor(const Matrix& a, int64_t n, bool single) {
    auto upload = runner_.Upload(Packed(a, n, n, kDTypeOf<T>));
    if (!upload.ok()) return upload.status();
    FactorRequest request;
    request.matrix_dtype = kDTypeOf<T>;
    request.factor_dtype = !single         ? kDTypeOf<T>
                           : kIsComplex<T> ? DType::kComplex64
                                           : DType::kFloat32;
    auto options = runner_.Options(request, n);
    if (!options.ok()) return options.status();
    return Factorize(context_, *std::move(upload),
                     {nullptr, kDTypeOf<T>, Layout::kColumnMajor, n, n}, *options,
                     JobRunner::NeverStop(), runner_.timings());
  }
  absl::StatusOr<FactorSolver> Inverse(const Factorization& factor, int64_t nrhs) {
    auto options = runner_.Options(SolveRequest{}, factor.summary, nrhs);
    if (!options.ok()) return options.status();
    return FactorSolver::Create(context_, factor, *options->solver, 0, nrhs);
  }
  // Runs GMRES from the initial guess `v.x`.
  absl::StatusOr<GmresResult> Solve(const Operand& a, Op op, InverseOperator& inverse,
                                    const GmresLimits& limits, Vectors<T>& v,
                                    StopRequested stop = JobRunner::NeverStop()) {
    return Run<GmresResult>(a, op, limits, v, [&](ResidualCheck& check, const GmresMemory& memory) {
      return Gmres(context_, check, inverse, limits, memory, stop);
    });
  }
  // Runs refinement, then GMRES if needed.
  absl::StatusOr<Correction> CorrectIt(const Operand& a, InverseOperator& inverse,
                                       const GmresLimits& limits, Vectors<T>& v) {
    return Run<Correction>(
        a, Op::kNone, limits, v, [&](ResidualCheck& check, const GmresMemory& memory) {
          return Correct(context_, check, inverse, limits, memory, JobRunner::NeverStop());
        });
  }
  template <class Result, class F>
  absl::StatusOr<Result> Run(const Operand& a, Op op, const GmresLimits& limits, Vectors<T>& v,
                             F run) {
    const int64_t n = a.order();
    ResidualCheck check(context_, {&a, op, View(v.x, n), View(v.b, n), View(v.r, n), {}});
    if (absl::Status status = check.Measure(); !status.ok()) return status;
    const int64_t nrhs = View(v.b, n).cols;
    auto bytes = GmresMemory::Bytes(n, nrhs, kDTypeOf<T>, limits.restart);
    if (!bytes.ok()) return bytes.status();
    auto block = context_.device().memory().Allocate(*bytes);
    if (!block.ok()) return block.status();
    const GmresMemory memory(block->data(), n, nrhs, kDTypeOf<T>, limits.restart);
    auto result = run(check, memory);
    error_ = check.errors().normwise;
    return result;
  }
  // Returns the backward error at which refinement from `v.x` stagnates.
  double RefinedError(const Operand& a, Op op, InverseOperator& inverse, Vectors<T> v) {
    const int64_t n = a.order();
    ResidualCheck check(context_, {&a, op, View(v.x, n), View(v.b, n), View(v.r, n), {}});
    EXPECT_OK(check.Measure());
    Matrix previous(v.b.size());
    EXPECT_OK(Refine(context_, check, inverse, {.max_steps = 100, .tolerance = kRoundoff},
                     View(previous, n), JobRunner::NeverStop()));
    return check.errors().normwise;
  }

  const std::unique_ptr<Device> device_ = host::MakeDevice({});
  JobRunner runner_{*device_};
  ExecutionContext& context_ = runner_.context();
  double error_ = 0;  // normwise backward error of the last Run
};

using Types = ::testing::Types<double, std::complex<double>>;
TYPED_TEST_SUITE(GmresTest, Types);

TYPED_TEST(GmresTest, SolvesWithFactorTooInaccurateForRefinement) {
  constexpr int64_t kN = 120;
  constexpr int64_t kColumns = 3;
  const auto old = this->Random(kN, kN, 3);
  auto far = this->Near(old, kN, 0.2);
  ASSERT_OK_AND_ASSIGN(const Factorization factor, this->Factor(old, kN, false));
  ASSERT_OK_AND_ASSIGN(FactorSolver inverse, this->Inverse(factor, kColumns));
  const DenseOperand a = this->Dense(far, kN);
  for (const Op op : kOps) {
    Vectors<TypeParam> v(this->Random(kN, kColumns, 5));
    EXPECT_GT(this->RefinedError(a, op, inverse, v), 1e-3);
    const GmresLimits limits{.max_iterations = 500, .restart = kN, .tolerance = 10 * kRoundoff};
    ASSERT_OK_AND_ASSIGN(const GmresResult result, this->Solve(a, op, inverse, limits, v));
    EXPECT_LE(result.iterations, kN + 5);
    EXPECT_GE(result.cycles, 1);
    EXPECT_LE(this->error_, 10 * kRoundoff);
    EXPECT_LE(BackwardError(far, kN, op, v.x, v.b, kColumns), 11 * kRoundoff);
  }
}

TYPED_TEST(GmresTest, SolvesIllConditionedMatrixWithSinglePrecisionFactor) {
  constexpr int64_t kN = 80;
  HostMatrix real = WithCondition(kN, 1e11, 3);
  std::vector<TypeParam> matrix(real.begin(), real.end());
  ASSERT_OK_AND_ASSIGN(const Factorization factor, this->Factor(matrix, kN, true));
  ASSERT_OK_AND_ASSIGN(FactorSolver inverse, this->Inverse(factor, 1));
  const DenseOperand a = this->Dense(matrix, kN);
  Vectors<TypeParam> v(this->Random(kN, 1, 5));
  EXPECT_GT(this->RefinedError(a, Op::kNone, inverse, v), 1e-13);
  const GmresLimits limits{.max_iterations = 200, .restart = 40, .tolerance = 10 * kRoundoff};
  ASSERT_OK(this->Solve(a, Op::kNone, inverse, limits, v));
  EXPECT_LE(BackwardError(matrix, kN, Op::kNone, v.x, v.b, 1), 11 * kRoundoff);
}

TYPED_TEST(GmresTest, RestartsAfterAFewVectors) {
  constexpr int64_t kN = 60;
  const auto old = this->Random(kN, kN, 3);
  auto near = this->Near(old, kN, 0.01);
  ASSERT_OK_AND_ASSIGN(const Factorization factor, this->Factor(old, kN, false));
  ASSERT_OK_AND_ASSIGN(FactorSolver inverse, this->Inverse(factor, 2));
  const DenseOperand a = this->Dense(near, kN);
  Vectors<TypeParam> v(this->Random(kN, 2, 5));
  const GmresLimits limits{.max_iterations = 500, .restart = 6, .tolerance = 4 * kRoundoff};
  ASSERT_OK_AND_ASSIGN(const GmresResult result, this->Solve(a, Op::kNone, inverse, limits, v));
  EXPECT_GT(result.cycles, 1);
  EXPECT_LE(this->error_, 4 * kRoundoff);
}

// A right-hand side that is already solved keeps its X, and a zero right-hand side gets X = 0.
TYPED_TEST(GmresTest, EndsEachRightHandSideSeparately) {
  constexpr int64_t kN = 50;
  const auto old = this->Random(kN, kN, 3);
  auto near = this->Near(old, kN, 0.05);
  ASSERT_OK_AND_ASSIGN(const Factorization factor, this->Factor(old, kN, false));
  ASSERT_OK_AND_ASSIGN(FactorSolver inverse, this->Inverse(factor, 3));
  const DenseOperand a = this->Dense(near, kN);
  const auto known = this->Random(kN, 1, 9);
  std::vector<TypeParam> b(3 * kN);
  const auto exact = Multiply(near, kN, Op::kNone, known, 1);
  const auto other = this->Random(kN, 1, 10);
  std::copy(exact.begin(), exact.end(), b.begin());
  std::copy(other.begin(), other.end(), b.begin() + 2 * kN);
  Vectors<TypeParam> v(b);
  std::copy(known.begin(), known.end(), v.x.begin());  // solved from the start
  const GmresLimits limits{.max_iterations = 200, .restart = 50, .tolerance = 10 * kRoundoff};
  ASSERT_OK(this->Solve(a, Op::kNone, inverse, limits, v));
  EXPECT_LE(this->error_, 10 * kRoundoff);
  for (int64_t i = 0; i < kN; ++i) {
    EXPECT_EQ(v.x[i], known[i]);
    EXPECT_EQ(v.x[kN + i], TypeParam{});
  }
}

TYPED_TEST(GmresTest, DoesNotDependOnTheMagnitudeOfRightHandSides) {
  constexpr int64_t kN = 40;
  const auto old = this->Random(kN, kN, 3);
  auto near = this->Near(old, kN, 0.01);
  ASSERT_OK_AND_ASSIGN(const Factorization factor, this->Factor(old, kN, false));
  ASSERT_OK_AND_ASSIGN(FactorSolver inverse, this->Inverse(factor, 3));
  const DenseOperand a = this->Dense(near, kN);
  std::vector<TypeParam> b = this->Random(kN, 3, 5);
  for (int64_t i = 0; i < kN; ++i) {
    b[i] *= 1e-280;
    b[kN + i] *= 1e280;
  }
  Vectors<TypeParam> v(b);
  const GmresLimits limits{.max_iterations = 200, .restart = 40, .tolerance = 10 * kRoundoff};
  ASSERT_OK(this->Solve(a, Op::kNone, inverse, limits, v));
  EXPECT_LE(this->error_, 10 * kRoundoff);
  EXPECT_LE(BackwardError(near, kN, Op::kNone, v.x, v.b, 3), 11 * kRoundoff);
}

TYPED_TEST(GmresTest, RespectsIterationLimitAndNeverIncreasesTheError) {
  constexpr int64_t kN = 100;
  const auto old = this->Random(kN, kN, 3);
  auto unrelated = this->Random(kN, kN, 4);
  ASSERT_OK_AND_ASSIGN(const Factorization factor, this->Factor(old, kN, false));
  ASSERT_OK_AND_ASSIGN(FactorSolver inverse, this->Inverse(factor, 2));
  const DenseOperand a = this->Dense(unrelated, kN);
  Vectors<TypeParam> v(this->Random(kN, 2, 5));
  for (const int iterations : {0, 1, 7}) {
    const GmresLimits limits{.max_iterations = iterations, .restart = 5, .tolerance = kRoundoff};
    const double before = BackwardError(unrelated, kN, Op::kNone, v.x, v.b, 2);
    ASSERT_OK_AND_ASSIGN(const GmresResult result, this->Solve(a, Op::kNone, inverse, limits, v));
    EXPECT_LE(result.iterations, iterations);
    EXPECT_LE(BackwardError(unrelated, kN, Op::kNone, v.x, v.b, 2), before * (1 + 1e-12));
  }
}

TYPED_TEST(GmresTest, StopsEarlyIfTooManyIterationsRemain) {
  constexpr int64_t kN = 120;
  constexpr int64_t kColumns = 3;
  const auto old = this->Random(kN, kN, 3);
  ASSERT_OK_AND_ASSIGN(const Factorization factor, this->Factor(old, kN, false));
  ASSERT_OK_AND_ASSIGN(FactorSolver inverse, this->Inverse(factor, kColumns));
  GmresLimits limits{.max_iterations = 500, .restart = kN, .tolerance = 10 * kRoundoff};
  for (const double change : {0.01, 1e-3}) {
    auto matrix = this->Near(old, kN, change);
    const DenseOperand a = this->Dense(matrix, kN);
    const Vectors<TypeParam> begin(this->Random(kN, kColumns, 5));
    Vectors<TypeParam> v = begin;
    limits.max_remaining = std::numeric_limits<double>::infinity();
    ASSERT_OK_AND_ASSIGN(const GmresResult all, this->Solve(a, Op::kNone, inverse, limits, v));
    EXPECT_FALSE(all.given_up);
    // GMRES continues to the end if max_remaining equals the iterations that it needs.
    v = begin;
    limits.max_remaining = all.iterations;
    ASSERT_OK_AND_ASSIGN(const GmresResult worth, this->Solve(a, Op::kNone, inverse, limits, v));
    EXPECT_FALSE(worth.given_up) << change;
    EXPECT_EQ(worth.iterations, all.iterations);
    EXPECT_LE(this->error_, limits.tolerance);
    v = begin;
    limits.max_remaining = all.iterations / 3.0;
    ASSERT_OK_AND_ASSIGN(const GmresResult left, this->Solve(a, Op::kNone, inverse, limits, v));
    EXPECT_TRUE(left.given_up) << change;
    EXPECT_LE(left.iterations, 3) << change;
    EXPECT_EQ(left.cycles, 1) << change;
    EXPECT_EQ(v.x, begin.x);
    // GMRES stops early only after min_iterations.
    limits.min_iterations = 4;
    limits.max_remaining = 0;
    ASSERT_OK_AND_ASSIGN(const GmresResult later, this->Solve(a, Op::kNone, inverse, limits, v));
    EXPECT_TRUE(later.given_up) << change;
    EXPECT_EQ(later.iterations, 4) << change;
    limits.min_iterations = 0;
  }
}

// The cost consists of iterations and of the start of each cycle, which costs more than an
// iteration.
TYPED_TEST(GmresTest, RespectsCostLimit) {
  constexpr int64_t kN = 120;
  const auto old = this->Random(kN, kN, 3);
  auto far = this->Near(old, kN, 0.05);
  ASSERT_OK_AND_ASSIGN(const Factorization factor, this->Factor(old, kN, false));
  ASSERT_OK_AND_ASSIGN(FactorSolver inverse, this->Inverse(factor, 1));
  const DenseOperand a = this->Dense(far, kN);
  const Vectors<TypeParam> begin(this->Random(kN, 1, 5));
  GmresLimits limits{.max_iterations = 500, .restart = 5, .tolerance = 10 * kRoundoff};
  limits.cycle_cost = 2.5;
  for (const auto& [cost, iterations, cycles] :
       {std::tuple(3.4, 0, 0), {3.6, 1, 1}, {7.5, 5, 1}, {10.9, 5, 1}, {12.1, 7, 2}}) {
    limits.max_cost = cost;
    Vectors<TypeParam> v = begin;
    ASSERT_OK_AND_ASSIGN(const GmresResult result, this->Solve(a, Op::kNone, inverse, limits, v));
    EXPECT_EQ(result.iterations, iterations) << cost;
    EXPECT_EQ(result.cycles, cycles) << cost;
  }
  limits.restart = 4;
  for (const double cost : {0.9, 10.0, 12.4}) {
    limits.max_cost = cost;
    Vectors<TypeParam> v = begin;
    ASSERT_OK_AND_ASSIGN(const Correction done, this->CorrectIt(a, inverse, limits, v));
    EXPECT_LE(done.cost, cost);
    EXPECT_GT(done.cost, cost - 2);
  }
}

// One column of the matrix has nearly doubled. A refinement step reduces the error in its direction
// only by a factor of 0.95; GMRES removes it at once.
TYPED_TEST(GmresTest, ContinuesIfOneDirectionSlowsRefinement) {
  constexpr int64_t kN = 120;
  auto matrix = this->Random(kN, kN, 3);
  for (int64_t i = 0; i < kN; ++i) matrix[i + i * kN] += TypeParam(kN);
  ASSERT_OK_AND_ASSIGN(const Factorization factor, this->Factor(matrix, kN, false));
  ASSERT_OK_AND_ASSIGN(FactorSolver inverse, this->Inverse(factor, 1));
  for (int64_t i = 0; i < kN; ++i) matrix[i] *= 1.95;
  const DenseOperand a = this->Dense(matrix, kN);
  Vectors<TypeParam> v(this->Random(kN, 1, 5));
  const GmresLimits limits{
      .max_iterations = 50, .restart = 20, .tolerance = 10 * kRoundoff, .max_remaining = 8};
  ASSERT_OK_AND_ASSIGN(const Correction done, this->CorrectIt(a, inverse, limits, v));
  EXPECT_LE(this->error_, limits.tolerance);
  EXPECT_LE(done.iterations, 8);
  EXPECT_GT(this->RefinedError(a, Op::kNone, inverse, Vectors<TypeParam>(v.b)), 1e-6);
}

// A factor whose gain is known is not used if too many steps would remain. A factor with an unknown
// gain is tried. GMRES does not begin if its first iteration would cost too much.
TYPED_TEST(GmresTest, DoesNotStartIfItsCostIsTooHigh) {
  constexpr int64_t kN = 120;
  auto old = this->Random(kN, kN, 3);
  ASSERT_OK_AND_ASSIGN(const Factorization factor, this->Factor(old, kN, false));
  ASSERT_OK_AND_ASSIGN(FactorSolver inverse, this->Inverse(factor, 1));
  auto matrix = this->Near(old, kN, 1e-3);
  const DenseOperand a = this->Dense(matrix, kN);
  const Vectors<TypeParam> begin(this->Random(kN, 1, 5));
  GmresLimits limits{.max_iterations = 50, .restart = 30, .tolerance = 10 * kRoundoff};
  Vectors<TypeParam> v = begin;
  ASSERT_OK_AND_ASSIGN(const Correction all, this->CorrectIt(a, inverse, limits, v));
  EXPECT_LE(this->error_, limits.tolerance);
  // The cost covers the GMRES iterations and half a refinement step.
  EXPECT_GE(all.cost, all.iterations);
  EXPECT_LE(all.cost, all.iterations + 1);
  limits.max_remaining = 2;
  for (const double gain : {0.0, 1.2, 4.0}) {
    v = begin;
    limits.known_gain = gain;
    ASSERT_OK_AND_ASSIGN(const Correction done, this->CorrectIt(a, inverse, limits, v));
    EXPECT_EQ(done.iterations == 0, gain == 4) << gain;
    EXPECT_LE(done.iterations, all.iterations) << gain;
  }
  // min_iterations are executed in any case.
  limits.min_iterations = 3;
  v = begin;
  ASSERT_OK_AND_ASSIGN(const Correction least, this->CorrectIt(a, inverse, limits, v));
  EXPECT_GE(least.iterations, 3);
  // With an unknown gain, one step of refinement may be enough.
  limits = {.max_iterations = 50, .restart = 30, .tolerance = 10 * kRoundoff, .max_remaining = 1.4};
  v = begin;
  ASSERT_OK_AND_ASSIGN(const Correction one,
                       this->CorrectIt(this->Dense(old, kN), inverse, limits, v));
  EXPECT_EQ(one.iterations, 1);
  EXPECT_LE(this->error_, limits.tolerance);
  // If it is not enough, GMRES does not begin, because its first iteration would cost too much.
  for (int64_t i = 0; i < kN; ++i) matrix[i] *= TypeParam(20);
  v = begin;
  ASSERT_OK_AND_ASSIGN(const Correction none,
                       this->CorrectIt(this->Dense(matrix, kN), inverse, limits, v));
  EXPECT_LE(none.iterations, 1);
  EXPECT_GT(this->error_, limits.tolerance);
}

// The factored matrix differs by one percent, so that each step reduces the error by a factor of
// 100.
TYPED_TEST(GmresTest, ContinuesRefinementIfFewStepsRemain) {
  constexpr int64_t kN = 30;
  auto matrix = this->Random(kN, kN, 3);
  ASSERT_OK_AND_ASSIGN(const Factorization factor, this->Factor(matrix, kN, false));
  ASSERT_OK_AND_ASSIGN(FactorSolver inverse, this->Inverse(factor, 1));
  for (TypeParam& entry : matrix) entry *= 1.01;
  const DenseOperand a = this->Dense(matrix, kN);
  constexpr double kEnough = 1e-13;
  const auto refine = [&](double few_steps) {
    Vectors<TypeParam> v(this->Random(kN, 1, 5));
    return this->template Run<Refinement>(
        a, Op::kNone, {}, v, [&](ResidualCheck& check, const GmresMemory& memory) {
          return Refine(
              this->context_, check, inverse,
              {.max_steps = 20, .tolerance = kEnough, .min_gain = 1e6, .few_steps = few_steps},
              memory.previous, JobRunner::NeverStop());
        });
  };
  for (const double few : {0.0, 2.0}) {
    ASSERT_OK_AND_ASSIGN(const Refinement done, refine(few));
    EXPECT_EQ(done.corrections, 1) << few;
    EXPECT_GT(this->error_, kEnough) << few;
  }
  ASSERT_OK_AND_ASSIGN(const Refinement done, refine(8));
  EXPECT_GT(done.corrections, 3);
  EXPECT_LE(this->error_, kEnough);
}

TYPED_TEST(GmresTest, StopsBetweenIterations) {
  constexpr int64_t kN = 30;
  auto matrix = this->Random(kN, kN, 3);
  ASSERT_OK_AND_ASSIGN(const Factorization factor, this->Factor(matrix, kN, true));
  ASSERT_OK_AND_ASSIGN(FactorSolver inverse, this->Inverse(factor, 1));
  const DenseOperand a = this->Dense(matrix, kN);
  Vectors<TypeParam> v(this->Random(kN, 1, 5));
  int polls = 0;
  const GmresLimits limits{.max_iterations = 20, .restart = 20, .tolerance = 0};
  EXPECT_THAT(this->Solve(a, Op::kNone, inverse, limits, v, [&] { return ++polls == 3; }),
              FailsWith(absl::StatusCode::kCancelled, ""));
  EXPECT_EQ(polls, 3);
}

TYPED_TEST(GmresTest, SolvesSmallOrdersAndWithExactInverses) {
  for (const int64_t n : {1, 2}) {
    auto matrix = this->Random(n, n, 3);
    ASSERT_OK_AND_ASSIGN(const Factorization factor, this->Factor(matrix, n, false));
    ASSERT_OK_AND_ASSIGN(FactorSolver inverse, this->Inverse(factor, 1));
    const DenseOperand a = this->Dense(matrix, n);
    Vectors<TypeParam> v(this->Random(n, 1, 5));
    const GmresLimits limits{.max_iterations = 10, .restart = 10, .tolerance = 2 * kRoundoff};
    ASSERT_OK_AND_ASSIGN(const GmresResult result, this->Solve(a, Op::kNone, inverse, limits, v));
    EXPECT_LE(result.iterations, 2);
    EXPECT_LE(this->error_, 2 * kRoundoff);
  }
}

TEST(GmresMemoryTest, RefusesInvalidSizes) {
  EXPECT_THAT(GmresMemory::Bytes(10, 0, DType::kFloat64, 5),
              FailsWith(absl::StatusCode::kInvalidArgument, ""));
  EXPECT_THAT(GmresMemory::Bytes(10, 1, DType::kFloat64, 0),
              FailsWith(absl::StatusCode::kInvalidArgument, ""));
  EXPECT_THAT(GmresMemory::Bytes(int64_t{1} << 40, int64_t{1} << 20, DType::kFloat64, 5),
              FailsWith(absl::StatusCode::kInvalidArgument, "overflows"));
}

}  // namespace
}  // namespace crout::testing::gmres_test
