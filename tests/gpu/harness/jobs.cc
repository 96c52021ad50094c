// SPDX-License-Identifier: Apache-2.0

#include "tests/gpu/harness/jobs.h"

#include <algorithm>
#include <set>
#include <utility>

#include "kernels/algorithm_registry.h"
#include "kernels/jobs/factorize.h"
#include "kernels/jobs/solve.h"
#include "tests/support/ratios.h"

namespace crout {
namespace {

double RatioOf(decltype(&testing::FactorRatio<double>) ratio, Bench& bench,
               const Factorization& factor, const HostMatrix& a) {
  const FactorSummary& summary = factor.summary;
  const int64_t n = summary.n;
  const HostFactor host = *bench.jobs().Download(factor);
  HostMatrix factored = a;
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      if (summary.row_scaled) factored[i + j * n] *= host.scales[i];
      if (summary.col_scaled) factored[i + j * n] *= host.scales[n + j];
    }
  }
  return ratio(testing::Rounded(std::move(factored), summary.factor_dtype), n, host.lu, host.ipiv,
               summary.unit_diagonal, summary.factor_dtype);
}

}  // namespace

FactorizeOptions OptionsOf(Device& device, DType factor_dtype, std::string_view algorithm) {
  auto found = FindAlgorithm(device, algorithm, factor_dtype, 1);
  EXPECT_TRUE(found.ok()) << found.status();
  FactorizeOptions options;
  options.algorithm = *found;
  options.factor_dtype = factor_dtype;
  return options;
}

const TriangularSolver* SolverOf(Device& device, std::string_view name) {
  FactorSummary factor;
  factor.preparation.emplace();  // every solver supports such a factor
  auto found = FindSolver(device, name, factor, 1);
  EXPECT_TRUE(found.ok()) << found.status();
  return *found;
}

void ExpectColumnsReported(Bench& bench, const std::vector<std::byte>& packed, int64_t n,
                           const FactorizeOptions& options) {
  std::vector<int64_t> reported;
  const auto note = [&] {
    reported.push_back(bench.context().report().ColumnsDone());
    return false;
  };
  KernelTimings timings;
  const auto factor = Factorize(bench.context(), bench.Put(packed),
                                {nullptr, options.factor_dtype, Layout::kColumnMajor, n, n},
                                options, note, timings);
  ASSERT_TRUE(factor.ok()) << factor.status();
  ASSERT_FALSE(reported.empty());
  EXPECT_EQ(reported.front(), 0);  // not the count of the context's previous job
  EXPECT_TRUE(std::is_sorted(reported.begin(), reported.end()));
  EXPECT_GT(reported.back(), n / 2);
  EXPECT_LT(reported.back(), n);
  const std::set<int64_t> distinct(reported.begin(), reported.end());
  EXPECT_GT(distinct.size(), 2u);  // first, last and some in between
}

Factorization StoredFactor(Bench& bench, const HostMatrix& lu, int64_t n, DType dtype,
                           UnitDiagonal unit) {
  Factorization factor;
  factor.summary.n = n;
  factor.summary.factor_dtype = factor.summary.matrix_dtype = dtype;
  factor.summary.unit_diagonal = unit;
  factor.parts.Add(kLuPart, PartKind::kFactor, bench.Put(testing::Packed(lu, n, n, dtype)));
  std::vector<int64_t> ipiv(n);
  for (int64_t i = 0; i < n; ++i) ipiv[i] = i + 1;
  factor.parts.Add(kIpivPart, PartKind::kFactor, bench.Put(ipiv));
  return factor;
}

double FactorRatioOf(Bench& bench, const Factorization& factor, const HostMatrix& a) {
  return RatioOf(testing::FactorRatio<double>, bench, factor, a);
}

double ProbedFactorRatioOf(Bench& bench, const Factorization& factor, const HostMatrix& a) {
  return RatioOf(testing::ProbedFactorRatio<double>, bench, factor, a);
}

}  // namespace crout
