// SPDX-License-Identifier: Apache-2.0

// Tests the multifrontal method of the device under test on every square shared matrix up to a
// limit of order. Pivots that are too small are postponed, and solves use one refinement step.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <iostream>
#include <map>
#include <string>

#include "kernels/sparse/delayed_pivots.h"
#include "kernels/sparse/ordering_process.h"
#include "kernels/util/sanitizers.h"
#include "kernels/util/status_macros.h"
#include "tests/kernels/multifrontal/multifrontal_testing.h"
#include "tests/support/matrices/matrices.h"
#include "tests/support/runners/device_under_test.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::multifrontal_matrices_test {
namespace {

constexpr int64_t kLargest = kSanitized ? 200 : 20000;
constexpr double kHuge = 1e12;  // condition number above which A may be found singular

// The result for one matrix.
struct Outcome {
  double error = 0;  // normwise backward error after one refinement step
  Factor factor;
  int rounds = 0;  // number of postponement rounds
};

class MultifrontalMatricesTest : public OnDeviceUnderTest<MultifrontalRunner> {
 protected:
  template <class T>
  absl::StatusOr<Outcome> Run(const AnySparse& a) {
    AnalysisOptions options;
    options.ordering_program = OrderingProgram();
    Outcome out;
    Factor& factor = out.factor;
    factor.dtype = a.dtype;
    CROUT_ASSIGN_OR_RETURN(factor.analysis, Analyze(a, options, kNeverStop));
    if (factor.analysis.unmatched_row >= 0) return out;
    CROUT_RETURN_IF_ERROR(FactorAgain(a, factor));
    while (out.rounds < 2 && !postponable_.empty() && IsUnstable(factor.summary)) {
      CROUT_ASSIGN_OR_RETURN(factor.analysis,
                             DelayPivots(factor.analysis, a, a.dtype, options, kNeverStop));
      ++out.rounds;
      CROUT_RETURN_IF_ERROR(FactorAgain(a, factor));
    }
    const SparseView<T> view = a.As<T>();
    std::vector<T> ones(a.n, T{1}), b = Less(view, std::vector<T>(a.n), ones), x(a.n);
    for (T& v : b) v = -v;
    std::vector<T> r = b;
    for (int step = 0; step < 2; ++step) {
      CROUT_RETURN_IF_ERROR(runner_->Solve(
          factor, Op::kNone, MatrixView<T>{r.data(), a.n, 1, std::max<int64_t>(1, a.n)}));
      for (int64_t i = 0; i < a.n; ++i) x[i] += r[i];
      r = Less(view, b, x);
    }
    double norm_a = 0;
    for (int64_t i = 0; i < a.n; ++i) {
      double sum = 0;
      view.ForRow(Op::kNone, i, [&](int32_t, T v) { sum += Modulus(v); });
      norm_a = std::max(norm_a, sum);
    }
    const double scale = norm_a * Norm(x) + Norm(b);
    out.error = Norm(r) == 0 ? 0 : Norm(r) / scale;
    return out;
  }

  absl::Status FactorAgain(const AnySparse& a, Factor& factor) {
    CROUT_ASSIGN_OR_RETURN(factor.summary, runner_->Again(a, factor, kNeverStop, &postponable_));
    return absl::OkStatus();
  }

  // Returns b - A x.
  template <class T>
  static std::vector<T> Less(const SparseView<T>& a, std::vector<T> b, const std::vector<T>& x) {
    for (int64_t i = 0; i < a.n; ++i) {
      a.ForRow(Op::kNone, i, [&](int32_t k, T v) { b[i] -= v * x[k]; });
    }
    return b;
  }
  template <class T>
  static double Norm(const std::vector<T>& x) {
    double norm = 0;
    for (const T& v : x) {
      if (!(Modulus(v) <= norm)) norm = Modulus(v);
    }
    return norm;
  }

  std::vector<int32_t> postponable_;
};

TEST_F(MultifrontalMatricesTest, FactorsAndSolves) {
  if (!MatricesDirectory()) {
    GTEST_SKIP() << "no shared matrices: set CROUT_MATRICES (ALL TESTS SKIPPED)";
  }
  std::map<std::string, int> of_sequence;
  int checked = 0, structural = 0, perturbed = 0, matched = 0, dissected = 0, postponed = 0;
  for (const RealMatrix& real : RealMatrixIndex()) {
    if (real.n > kLargest) continue;
    const bool sequence = real.file.rfind("seq_", 0) == 0;
    if (sequence && ++of_sequence[real.file.substr(0, real.file.rfind('/'))] > 3) continue;
    SCOPED_TRACE(real.file);
    const absl::StatusOr<std::vector<SparseEntry>> entries = ReadSparseMatrix(real);
    if (!entries.ok()) continue;  // not square
    const bool complex = real.field == "complex";
    const PackedSparse a =
        PackEntries(*entries, real.n, complex ? DType::kComplex128 : DType::kFloat64);
    const auto result = complex ? Run<std::complex<double>>(a.view()) : Run<double>(a.view());
    ASSERT_OK(result);
    ++checked;
    const Outcome& outcome = *result;
    if (outcome.factor.analysis.unmatched_row >= 0) {
      ++structural;
      EXPECT_FALSE(real.condition > 0 && real.condition < kHuge) << real.note;
      continue;
    }
    matched += outcome.factor.analysis.matched;
    perturbed += outcome.factor.summary.perturbed_pivots > 0;
    dissected += outcome.factor.analysis.ordering == "metis";
    if (outcome.factor.summary.info > 0) {
      EXPECT_FALSE(real.condition > 0 && real.condition < kHuge) << real.note;
      continue;
    }
    postponed += outcome.rounds > 0;
    if (!(real.condition > 0 && real.condition < kHuge)) continue;
    EXPECT_EQ(outcome.factor.summary.perturbed_pivots, 0);
    EXPECT_LT(outcome.error, 1e-15);
  }
  std::cout << checked << " matrices, " << structural << " structurally singular, " << matched
            << " matched, " << perturbed << " with perturbed pivots, " << dissected
            << " by nested dissection, " << postponed << " postponed\n";
  EXPECT_GT(checked, kSanitized ? 90 : 100);
}

}  // namespace
}  // namespace crout::testing::multifrontal_matrices_test
