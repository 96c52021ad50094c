// SPDX-License-Identifier: Apache-2.0

// Tests the published Maxwell problem: its sizes, the convergence of its solutions to the exact
// field, and the multifrontal method applied to it.
#include "tests/support/matrices/maxwell.h"

#include <cmath>
#include <complex>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/host/multifrontal/multifrontal.h"
#include "kernels/sparse/ordering_process.h"
#include "kernels/util/sanitizers.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::maxwell_test {
namespace {

constexpr auto kNeverStop = [] { return false; };

struct Solved {
  std::vector<std::complex<double>> x;
  double error = 0;  // normwise backward error of x
  NumericSummary summary;
};

// Solves with the multifrontal method and one refinement step.
template <class T>
Solved Solve(const MaxwellTorus& torus) {
  const PackedSparse packed = PackEntries(torus.Entries(), torus.n(), kDTypeOf<T>);
  const AnySparse a = packed.view();
  AnalysisOptions options;
  options.ordering_program = OrderingProgram();
  const absl::StatusOr<Analysis> analysis = Analyze(a, options, kNeverStop);
  EXPECT_OK(analysis.status());
  host::Executor executor(2);
  std::vector<std::byte> factor(host::MultifrontalFactorBytes(*analysis, a.dtype));
  std::vector<std::byte> workspace(
      std::max(host::MultifrontalWorkspaceBytes(executor, *analysis, a.dtype),
               host::MultifrontalSolveWorkspaceBytes(executor, *analysis, a.dtype, 1)));
  const auto summary =
      host::FactorMultifrontal(executor, *analysis, a, a.dtype, factor, workspace, kNeverStop);
  EXPECT_OK(summary.status());
  Solved solved;
  solved.summary = *summary;
  const std::vector<std::complex<double>> b = torus.RightHandSide();
  std::vector<T> x(a.n), r(a.n);
  for (int step = 0; step < 3; ++step) {
    double largest = 0, norm_a = 0, norm_x = 0, norm_b = 0;
    for (int64_t i = 0; i < a.n; ++i) {
      if constexpr (kIsComplex<T>) r[i] = b[i];
      if constexpr (!kIsComplex<T>) r[i] = b[i].real();
      norm_b = std::max(norm_b, std::abs(r[i]));
      double row = 0;
      a.As<T>().ForRow(Op::kNone, i, [&](int32_t k, T v) {
        r[i] -= v * x[k];
        row += std::abs(v);
      });
      norm_a = std::max(norm_a, row);
      norm_x = std::max(norm_x, std::abs(x[i]));
      largest = std::max(largest, std::abs(r[i]));
    }
    solved.error = largest / (norm_a * norm_x + norm_b);
    if (step == 2) break;
    EXPECT_OK(host::SolveMultifrontal(executor, *analysis, factor, Op::kNone,
                                      MatrixView<T>{r.data(), a.n, 1, a.n}, workspace, kNeverStop));
    for (int64_t i = 0; i < a.n; ++i) x[i] += r[i];
  }
  solved.x.assign(x.begin(), x.end());
  return solved;
}

TEST(MaxwellTest, HasThePublishedSizes) {
  const int64_t orders[] = {1560, 10800, 79968, 614592};
  const int64_t entries[] = {40728, 314928, 2476128};
  for (int r = 2; r <= 5; ++r) EXPECT_EQ(MaxwellTorus(r).n(), orders[r - 2]);
  for (int r = 2; r <= (kSanitized ? 3 : 4); ++r) {
    EXPECT_EQ(std::ssize(MaxwellTorus(r).Entries()), entries[r - 2]);
  }
}

TEST(MaxwellTest, IsSymmetricAndComplexWithLosses) {
  for (const double loss : {0.0, 0.1}) {
    const MaxwellTorus torus(2, 0, loss);
    std::vector<SparseEntry> entries = torus.Entries();
    double imaginary = 0;
    for (const SparseEntry& entry : entries) {
      imaginary = std::max(imaginary, std::abs(entry.value.imag()));
    }
    EXPECT_EQ(imaginary > 0, loss > 0);
    EXPECT_TRUE(IsSymmetric(PackEntries(std::move(entries), torus.n(), DType::kFloat64).view()));
  }
}

TEST(MaxwellTest, ErrorDecreasesLinearlyWithCellWidth) {
  constexpr double kOmega = 4;
  double before = MaxwellTorus(1, kOmega).ErrorOf(Solve<double>(MaxwellTorus(1, kOmega)).x);
  for (int r = 2; r <= (kSanitized ? 2 : 3); ++r) {
    const MaxwellTorus torus(r, kOmega);
    const double error = torus.ErrorOf(Solve<double>(torus).x);
    // The error may fall faster than the cell width, because coarse cells also approximate the
    // torus poorly.
    EXPECT_GT(before / error, 1.9) << "r = " << r << ", error " << error;
    EXPECT_LT(before / error, 3) << "r = " << r << ", error " << error;
    before = error;
  }
}

TEST(MaxwellTest, SolvesToRoundoffAfterOneRefinement) {
  const MaxwellTorus torus(kSanitized ? 2 : 3);
  const Solved real = Solve<double>(torus);
  EXPECT_EQ(real.summary.info, 0);
  EXPECT_LT(real.error, 2e-15);
  const MaxwellTorus lossy(2, 0, 0.05);
  const Solved complex = Solve<std::complex<double>>(lossy);
  EXPECT_LT(complex.error, 2e-15);
  EXPECT_LT(lossy.ErrorOf(complex.x), 0.5);
}

}  // namespace
}  // namespace crout::testing::maxwell_test
