// SPDX-License-Identifier: Apache-2.0

// Tests the host's sparse methods against LAPACK's dense solutions on every square shared matrix up
// to order 2000, by backward and forward errors.
#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/host/device/host_device.h"
#include "kernels/sparse/ordering_process.h"
#include "kernels/util/sanitizers.h"
#include "kernels/util/status_macros.h"
#include "tests/kernels/jobs/sparse_job_testing.h"
#include "tests/support/matrices/matrices.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::sparse_oracle_test {
namespace {

constexpr int64_t kLargest = kSanitized ? 500 : 2000;
constexpr auto kNeverStop = [] { return false; };

lapack_complex_double* Lapack(std::complex<double>* a) {
  return reinterpret_cast<lapack_complex_double*>(a);
}
double* Lapack(double* a) { return a; }
lapack_int Getrf(lapack_int n, double* a, lapack_int* ipiv) {
  return LAPACKE_dgetrf(LAPACK_COL_MAJOR, n, n, a, n, ipiv);
}
lapack_int Getrf(lapack_int n, lapack_complex_double* a, lapack_int* ipiv) {
  return LAPACKE_zgetrf(LAPACK_COL_MAJOR, n, n, a, n, ipiv);
}
lapack_int Getrs(lapack_int n, const double* a, const lapack_int* ipiv, double* b) {
  return LAPACKE_dgetrs(LAPACK_COL_MAJOR, 'N', n, 1, a, n, ipiv, b, n);
}
lapack_int Getrs(lapack_int n, const lapack_complex_double* a, const lapack_int* ipiv,
                 lapack_complex_double* b) {
  return LAPACKE_zgetrs(LAPACK_COL_MAJOR, 'N', n, 1, a, n, ipiv, b, n);
}
lapack_int Gecon(lapack_int n, const double* a, double norm, double* rcond) {
  return LAPACKE_dgecon(LAPACK_COL_MAJOR, 'I', n, a, n, norm, rcond);
}
lapack_int Gecon(lapack_int n, const lapack_complex_double* a, double norm, double* rcond) {
  return LAPACKE_zgecon(LAPACK_COL_MAJOR, 'I', n, a, n, norm, rcond);
}

template <class T>
struct Oracle {
  std::vector<T> a;  // n x n
  std::vector<T> b;
  std::vector<T> x;
  bool singular = false;
  double rcond = 0;
};

template <class T>
Oracle<T> Solved(const SparseView<T>& a) {
  const int64_t n = a.n;
  Oracle<T> oracle;
  oracle.a.resize(n * n);
  for (int64_t i = 0; i < n; ++i) {
    a.ForRow(Op::kNone, i, [&](int32_t j, T v) { oracle.a[i + j * n] = v; });
  }
  for (int64_t i = 0; i < n; ++i) oracle.b.push_back(T(1.0 + static_cast<double>(i % 7)));
  std::vector<T> lu = oracle.a;
  std::vector<lapack_int> ipiv(n);
  const auto order = static_cast<lapack_int>(n);
  oracle.singular = Getrf(order, Lapack(lu.data()), ipiv.data()) != 0;
  if (oracle.singular) return oracle;
  EXPECT_EQ(Gecon(order, Lapack(lu.data()), NormInf(oracle.a, n), &oracle.rcond), 0);
  oracle.x = oracle.b;
  EXPECT_EQ(Getrs(order, Lapack(lu.data()), ipiv.data(), Lapack(oracle.x.data())), 0);
  return oracle;
}

struct Counts {
  int solved = 0;
  int regular = 0;  // solved, and well-conditioned
  int poor = 0;     // solved inaccurately, and ill-conditioned
  int structural = 0;
  int singular = 0;
  double worst_backward = 0;  // largest SolveRatio
  double worst_forward = 0;   // largest ForwardRatio
};

class SparseOracleTest : public ::testing::Test {
 protected:
  absl::StatusOr<Factorization> Factor(const std::string& method,
                                       std::shared_ptr<const Analysis> analysis,
                                       const AnySparse& a) {
    SparseFactorizeOptions wanted;
    wanted.method = MethodOf(*device_, method);
    wanted.factor_dtype = a.dtype;
    CROUT_ASSIGN_OR_RETURN(const SparseFactorizePlan plan,
                           PlanSparseFactorize(wanted, std::move(analysis), false, a.dtype));
    CROUT_ASSIGN_OR_RETURN(const size_t bytes, SparseBytes(a.n, a.nonzeros, a.dtype));
    CROUT_ASSIGN_OR_RETURN(Buffer upload, device_->memory().Allocate(bytes));
    std::copy_n(a.data, bytes, upload.data());
    GrantingGrowth growth;
    return FactorizeSparse(runner_.context(), plan, std::move(upload), kNeverStop,
                           runner_.timings(), &growth);
  }

  // Solves with refinement, as the service does. Sets `reported` to the reported backward error.
  template <class T>
  absl::StatusOr<std::vector<T>> Solve(const Factorization& factor, const std::vector<T>& b,
                                       double& reported) {
    const int64_t n = factor.summary.n;
    SolveOptions options;
    options.solver = MethodOf(*device_, factor.summary.algorithm).solver;
    options.max_refinement_steps = 5;
    std::vector<T> x = b;
    auto* const bytes = reinterpret_cast<std::byte*>(x.data());
    CROUT_ASSIGN_OR_RETURN(Buffer upload, runner_.Upload({bytes, bytes + n * sizeof(T)}));
    const PackedMatrix shape{nullptr, kDTypeOf<T>, Layout::kColumnMajor, n, 1};
    CROUT_ASSIGN_OR_RETURN(const SolveSummary summary,
                           crout::Solve(runner_.context(), factor, std::move(upload), shape,
                                        options, bytes, kNeverStop, runner_.timings()));
    reported = *summary.backward_error;
    return x;
  }

  template <class T>
  void Compare(const PackedSparse& a) {
    const Oracle<T> oracle = Solved(a.view().As<T>());
    // For other matrices, rounding errors decide whether they are found singular.
    const bool regular = !oracle.singular && oracle.rcond > std::numeric_limits<double>::epsilon();
    AnalysisOptions options;
    options.ordering_program = OrderingProgram();
    ASSERT_OK_AND_ASSIGN(Analysis made, Analyze(a.view(), options, kNeverStop));
    const auto analysis = std::make_shared<const Analysis>(std::move(made));
    for (auto& [method, counts] : counts_) {
      SCOPED_TRACE(method);
      if (analysis->unmatched_row >= 0) {
        EXPECT_FALSE(regular) << "structurally singular, but rcond " << oracle.rcond;
        ++counts.structural;
        continue;
      }
      ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(method, analysis, a.view()));
      if (factor.summary.info > 0 || oracle.singular) {
        EXPECT_FALSE(regular) << "singular, but rcond " << oracle.rcond;
        ++counts.singular;
        continue;
      }
      ++counts.solved;
      double reported = 0;
      ASSERT_OK_AND_ASSIGN(const std::vector<T> x, Solve(factor, oracle.b, reported));
      const double backward = SolveRatio(oracle.a, a.n, Op::kNone, x, oracle.b, 1, DType::kFloat64);
      if (!regular) {
        // An inaccurate solution is acceptable if its reported error shows it.
        if (backward < kThreshold) continue;
        ++counts.poor;
        EXPECT_FALSE(reported < 1e-15) << reported << ", ratio " << backward;
        continue;
      }
      const double forward = ForwardRatio(x, oracle.x, a.n, 1, oracle.rcond, DType::kFloat64);
      EXPECT_LT(backward, kThreshold);
      EXPECT_LT(forward, kThreshold);
      ++counts.regular;
      counts.worst_backward = std::max(counts.worst_backward, backward);
      counts.worst_forward = std::max(counts.worst_forward, forward);
    }
  }

  std::map<std::string, Counts> counts_ = {{"klu", {}}, {"multifrontal", {}}};
  std::unique_ptr<Device> device_ = host::MakeDevice({});
  JobRunner runner_{*device_};
};

TEST_F(SparseOracleTest, SolvesMatricesThatLapackSolves) {
  if (!MatricesDirectory()) {
    GTEST_SKIP() << "no shared matrices: set CROUT_MATRICES (ALL TESTS SKIPPED)";
  }
  for (const RealMatrix& real : RealMatrixIndex()) {
    if (real.n > kLargest || real.n == 0) continue;
    SCOPED_TRACE(real.file);
    const absl::StatusOr<std::vector<SparseEntry>> entries = ReadSparseMatrix(real);
    if (!entries.ok()) continue;  // not square
    const bool complex = real.field == "complex";
    const PackedSparse a =
        PackEntries(*entries, real.n, complex ? DType::kComplex128 : DType::kFloat64);
    complex ? Compare<std::complex<double>>(a) : Compare<double>(a);
  }
  for (const auto& [method, counts] : counts_) {
    std::cout << method << ": " << counts.solved << " solved (" << counts.regular << " regular, "
              << counts.poor << " others poorly), " << counts.structural
              << " structurally singular, " << counts.singular
              << " singular; largest ratios: backward " << counts.worst_backward << ", forward "
              << counts.worst_forward << "\n";
    EXPECT_GT(counts.regular, 100);
  }
}

}  // namespace
}  // namespace crout::testing::sparse_oracle_test
