// SPDX-License-Identifier: Apache-2.0

// Tests crout_solve with ill-conditioned blocks: its bound, its measured error, and the choice of
// the solver.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

#include "kernels/jobs/factorize.h"
#include "kernels/jobs/solve.h"
#include "tests/gpu/solve/prepared_solves.h"
#include "tests/support/ratios.h"

namespace crout::solve_fallback_test {
namespace {

using ::crout::testing::GalleryNamed;
using ::crout::testing::Multiply;
using ::crout::testing::RandomMatrix;
using ::crout::testing::Rounded;

class GpuSolveFallbackTest : public PreparedSolveTest {
 protected:
  void CheckMeasured(const char* name, const HostMatrix& a, const Factorization& factor, Op op);
};

// Expects a backward error that is accepted or about as small as substitution's, and the name of
// the solver in the summary. Prints the errors.
void GpuSolveFallbackTest::CheckMeasured(const char* name, const HostMatrix& a,
                                         const Factorization& factor, Op op) {
  const FactorSummary& summary = factor.summary;
  const int64_t n = summary.n;
  const DType dtype = summary.factor_dtype;
  const HostMatrix b = Rounded(Multiply(a, n, op, RandomMatrix(n, 3, 7), 3), dtype);
  const HostMatrix plain =
      Substituted(*gpu_->jobs().Download(factor), n, summary.unit_diagonal, op, dtype, b);
  const double accepted = AcceptedBackwardError(dtype, n);
  const double substituted = testing::BackwardError(a, n, op, plain, b, 3);
  const double good_enough = std::max(accepted, kWorse * substituted);
  const double condition =
      op == Op::kNone ? summary.preparation->condition : summary.preparation->transposed_condition;
  const Reliability trust = ours_->AssessPreparation(*summary.preparation, dtype, n, op);

  SolveOptions options;
  options.solver = ours_;
  options.op = op;
  const auto solve = [&] {
    return gpu_->jobs().Solve(factor, b, 3, summary.matrix_dtype, Layout::kColumnMajor, options);
  };
  double own = NAN;  // error of crout_solve, if the bound permits its use
  if (trust != Reliability::kNone) {
    const auto alone = solve();
    ASSERT_TRUE(alone.ok()) << alone.status();
    own = testing::BackwardError(a, n, op, alone->x, b, 3);
  }
  std::printf("%-8s n=%-4lld %s op %d condition %.1e crout_solve %.1e substitution %.1e\n", name,
              static_cast<long long>(n), std::string(NameOf(dtype)).c_str(), static_cast<int>(op),
              condition, own, substituted);

  options.fallback = SolverOf(Gpu(), "trsm");
  const auto measured = solve();
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_LE(testing::BackwardError(a, n, op, measured->x, b, 3), good_enough);
  // Near the limit, the device's error may be accepted when this error is not, or vice versa.
  if (trust == Reliability::kNone || own < accepted / 2 || own > accepted * 2) {
    const SolverFallback expected = trust == Reliability::kNone ? SolverFallback::kCondition
                                    : own <= accepted           ? SolverFallback::kNone
                                                                : SolverFallback::kBackwardError;
    EXPECT_EQ(measured->summary.fallback, expected);
    EXPECT_EQ(measured->summary.solver,
              expected == SolverFallback::kNone ? ours_->name() : options.fallback->name());
  }

  options.verify = false;
  const auto unmeasured = solve();
  ASSERT_TRUE(unmeasured.ok()) << unmeasured.status();
  EXPECT_LE(testing::BackwardError(a, n, op, unmeasured->x, b, 3), good_enough);
  EXPECT_EQ(unmeasured->summary.solver,
            trust == Reliability::kFull ? ours_->name() : options.fallback->name());
}

struct BadTriangle {
  const char* name;
  // Return element (i, j) with i < j, and the diagonal element i. Each step of substitution
  // multiplies the size of the solution by `growth`.
  double (*element)(int64_t i, int64_t j, double growth, double random);
  double (*diagonal)(int64_t i, double growth);
};

// The condition numbers range from small ones, for which crout_solve is used, to large ones, for
// which it is not.
TEST_F(GpuSolveFallbackTest, MeasuresSolvesWithBadBlocks) {
  constexpr int64_t kN = 600;
  constexpr double kBlock = 512;
  const auto one = [](int64_t, double) { return 1.0; };
  const BadTriangle kinds[] = {
      {"kahan",
       [](int64_t i, int64_t, double growth, double) {
         const double c = growth - 1;
         return -c * std::pow(1 - c * c, static_cast<double>(i) / 2);
       },
       [](int64_t i, double growth) {
         const double c = growth - 1;
         return std::pow(1 - c * c, static_cast<double>(i) / 2);
       }},
      {"triw", [](int64_t, int64_t, double growth, double) { return 1 - growth; }, one},
      // Elements grow with the distance from the diagonal, without cancellation in the inverse.
      {"graded",
       [](int64_t i, int64_t j, double growth, double random) {
         return random / 8 * std::pow(growth, static_cast<double>(j - i));
       },
       one},
  };
  const HostMatrix random = RandomMatrix(kN, kN, 3);
  for (const BadTriangle& kind : kinds) {
    for (const double condition : {1e2, 1e4, 1e6, 1e8, 1e10, 1e11, 1e14}) {
      const double growth = std::pow(condition, 1 / kBlock);
      for (const bool lower : {false, true}) {
        for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
          HostMatrix lu(kN * kN, 0.0);
          for (int64_t j = 0; j < kN; ++j) {
            lu[j + j * kN] = kind.diagonal(j, growth);
            for (int64_t i = 0; i < j; ++i) {
              (lower ? lu[j + i * kN] : lu[i + j * kN]) =
                  kind.element(i, j, growth, random[i + j * kN]);
            }
          }
          lu = Rounded(std::move(lu), dtype);
          const UnitDiagonal unit = lower ? UnitDiagonal::kU : UnitDiagonal::kL;
          const HostMatrix a = Rounded(ProductOf(lu, kN, unit), dtype);
          const Factorization factor = PreparedWithMatrix(lu, a, kN, dtype, unit);
          for (const Op op : {Op::kNone, Op::kTranspose}) CheckMeasured(kind.name, a, factor, op);
        }
      }
    }
  }
}

// The matrices need pivoting, but the methods do not pivot.
TEST_F(GpuSolveFallbackTest, MeasuresSolvesWithFactorsOfUnpivotedMethods) {
  constexpr int64_t kN = 600;
  for (const char* algorithm : {"block_lu", "pcm"}) {
    for (const double diagonal : {0.0, 1.0, 10.0}) {
      for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
        HostMatrix a = RandomMatrix(kN, kN, 11);
        for (int64_t i = 0; i < kN; ++i) a[i + i * kN] += diagonal;
        a = Rounded(std::move(a), dtype);
        const auto factor = Prepared(a, kN, dtype, algorithm);
        ASSERT_TRUE(factor.ok()) << factor.status();
        if (!factor->summary.preparation) continue;  // the factor overflowed
        for (const Op op : {Op::kNone, Op::kTranspose}) CheckMeasured(algorithm, a, *factor, op);
      }
    }
  }
}

// Changes the inverse of a block, as a memory error would.
TEST_F(GpuSolveFallbackTest, ReplacesInaccurateSolutions) {
  constexpr int64_t kN = 600;
  const HostMatrix a = GalleryNamed("random").make(kN);
  for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
    auto factor = Prepared(a, kN, dtype);
    ASSERT_TRUE(factor.ok()) << factor.status();
    std::vector<std::byte> zeros(64 * SizeOf(dtype));  // first column of the first inverse of L
    std::byte* const inverse = factor->prepared().data() + kN * sizeof(int64_t);
    ASSERT_TRUE(gpu_->ops().CopyToDevice(zeros.data(), inverse, zeros.size()).ok());
    gpu_->Wait();
    const HostMatrix b = RandomMatrix(kN, 3, 5);
    SolveOptions options;
    options.solver = ours_;
    options.fallback = SolverOf(Gpu(), "trsm");
    options.max_refinement_steps = dtype == DType::kFloat32 ? 5 : 0;
    const auto solved = gpu_->jobs().Solve(*factor, b, 3, dtype, Layout::kColumnMajor, options);
    ASSERT_TRUE(solved.ok()) << solved.status();
    EXPECT_EQ(solved->summary.fallback, SolverFallback::kBackwardError);
    EXPECT_EQ(solved->summary.solver, "trsm");
    EXPECT_LT(*solved->summary.backward_error, 16 * UnitRoundoff(dtype));
  }
}

// The device's float64 residuals check the solutions.
TEST_F(GpuSolveFallbackTest, SolvesWithLargeFloat32FactorsAsAccuratelyAsSubstitution) {
  for (const int64_t n : {4096, 8192, 16384}) {
    SCOPED_TRACE(n);
    const std::vector<float> a = RandomVector<float>(n * n, 12);
    FactorizeOptions factorize = OptionsOf(Gpu(), DType::kFloat32, "crout_lu");
    factorize.prepare = ours_;
    KernelTimings timings;
    const auto factor = Factorize(
        gpu_->context(), gpu_->Put(a), {nullptr, DType::kFloat32, Layout::kColumnMajor, n, n},
        factorize, [] { return false; }, timings);
    ASSERT_TRUE(factor.ok()) << factor.status();
    ASSERT_TRUE(factor->summary.preparation.has_value());
    for (const int64_t nrhs : {1, 10}) {
      const HostMatrix b = RandomMatrix(n, nrhs, 13);
      for (const Op op : {Op::kNone, Op::kTranspose}) {
        SolveOptions options;
        options.op = op;
        options.solver = SolverOf(Gpu(), "trsm");
        const auto plain =
            gpu_->jobs().Solve(*factor, b, nrhs, DType::kFloat32, Layout::kColumnMajor, options);
        options.fallback = std::exchange(options.solver, ours_);
        const auto solved =
            gpu_->jobs().Solve(*factor, b, nrhs, DType::kFloat32, Layout::kColumnMajor, options);
        ASSERT_TRUE(plain.ok() && solved.ok()) << plain.status() << solved.status();
        EXPECT_EQ(solved->summary.solver, ours_->name());
        const double own = *solved->summary.backward_error;
        const double substituted = *plain->summary.backward_error;
        std::printf("n=%lld nrhs=%lld op %d crout_solve %.1e trsm %.1e\n",
                    static_cast<long long>(n), static_cast<long long>(nrhs), static_cast<int>(op),
                    own, substituted);
        EXPECT_LE(own, kWorse * std::max(UnitRoundoff(DType::kFloat32), substituted));
      }
    }
  }
}

}  // namespace
}  // namespace crout::solve_fallback_test
