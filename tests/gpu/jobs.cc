#include "tests/gpu/jobs.h"

#include <algorithm>
#include <set>
#include <type_traits>
#include <utility>

#include "kernels/algorithm_registry.h"
#include "kernels/jobs/factorize.h"
#include "kernels/jobs/solve.h"
#include "kernels/util/status_macros.h"
#include "tests/support/ratios.h"

namespace crout {
namespace {

bool Never() { return false; }

HostMatrix Doubles(Bench& bench, const Buffer& buffer, DType dtype) {
  return DispatchReal(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> values = bench.Get<T>(buffer);
    if constexpr (std::is_same_v<T, double>) {
      return values;
    } else {
      return HostMatrix(values.begin(), values.end());
    }
  });
}

double RatioOf(decltype(&testing::FactorRatio<double>) ratio, Bench& bench,
               const Factorization& factor, const HostMatrix& a) {
  const FactorSummary& summary = factor.summary;
  const int64_t n = summary.n;
  const HostFactor host = Download(bench, factor);
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
  factor.preparation.emplace();  // any solver would do with it
  auto found = FindSolver(device, name, factor, 1);
  EXPECT_TRUE(found.ok()) << found.status();
  return *found;
}

absl::StatusOr<Factorization> FactorizeOn(Bench& bench, const HostMatrix& a, int64_t n, DType dtype,
                                          Layout layout, const FactorizeOptions& options) {
  Buffer upload = bench.Put(testing::Packed(a, n, n, dtype, layout));
  KernelTimings timings;
  return Factorize(bench.context(), std::move(upload), {nullptr, dtype, layout, n, n}, options,
                   Never, timings);
}

void ExpectColumnsTold(Bench& bench, const std::vector<std::byte>& packed, int64_t n,
                       const FactorizeOptions& options) {
  std::vector<int64_t> told;
  const auto note = [&] {
    told.push_back(bench.context().report().ColumnsDone());
    return false;
  };
  KernelTimings timings;
  const auto factor = Factorize(bench.context(), bench.Put(packed),
                                {nullptr, options.factor_dtype, Layout::kColumnMajor, n, n},
                                options, note, timings);
  ASSERT_TRUE(factor.ok()) << factor.status();
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.front(), 0);  // not what the context's last job left
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_GT(told.back(), n / 2);
  EXPECT_LT(told.back(), n);
  const std::set<int64_t> distinct(told.begin(), told.end());
  EXPECT_GT(distinct.size(), 2u);  // first, last and some between
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

HostFactor Download(Bench& bench, const Factorization& factor) {
  HostFactor host;
  host.lu = Doubles(bench, factor.lu(), factor.summary.factor_dtype);
  host.ipiv = bench.Get<int64_t>(factor.ipiv());
  host.scales = bench.Get<double>(factor.scales());
  return host;
}

double FactorRatioOf(Bench& bench, const Factorization& factor, const HostMatrix& a) {
  return RatioOf(testing::FactorRatio<double>, bench, factor, a);
}

double ProbedFactorRatioOf(Bench& bench, const Factorization& factor, const HostMatrix& a) {
  return RatioOf(testing::ProbedFactorRatio<double>, bench, factor, a);
}

absl::StatusOr<Solved> SolveOn(Bench& bench, const Factorization& factor, const HostMatrix& b,
                               int64_t nrhs, DType dtype, Layout layout,
                               const SolveOptions& options) {
  const int64_t n = factor.summary.n;
  Buffer upload = bench.Put(testing::Packed(b, n, nrhs, dtype, layout));
  PackedMatrix shape{nullptr, dtype, layout, n, nrhs};
  std::vector<std::byte> out(shape.bytes());
  KernelTimings timings;
  CROUT_ASSIGN_OR_RETURN(SolveSummary summary, Solve(bench.context(), factor, std::move(upload),
                                                     shape, options, out.data(), Never, timings));
  return Solved{std::move(summary), testing::Unpacked(out.data(), shape)};
}

}  // namespace crout
