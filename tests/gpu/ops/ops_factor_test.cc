// SPDX-License-Identifier: Apache-2.0

// Tests a GPU's statistics of factors against the host's.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/scalar.h"
#include "tests/gpu/ops/ops_testing.h"

namespace crout::ops_factor_test {
namespace {

// Returns the statistics of the factor `lu`. The probe uses the matrix `lu`.
template <class T>
FactorStats Inspect(Bench& bench, const std::vector<T>& lu, int64_t n, bool unit_in_u,
                    const std::vector<int64_t>& ipiv) {
  const Buffer factor = bench.Put(lu);
  const Buffer pivots = bench.Put(ipiv);
  const Buffer work = bench.Allocate(FactorProbeVectors(kDTypeOf<T>) * n * sizeof(double));
  const FactorProbe probe{n, 0.5, work.as<double>()};
  EXPECT_TRUE(bench.ops().StartProbe({factor.data(), kDTypeOf<T>, n, n, n}, probe).ok());
  EXPECT_TRUE(bench.ops()
                  .InspectFactor({factor.data(), kDTypeOf<T>, n, n, n}, unit_in_u,
                                 pivots.template as<int64_t>(), probe)
                  .ok());
  return bench.Wait().factor;
}

template <class T>
void CheckInspect(Bench& gpu, Bench& host) {
  for (const int64_t n : {1, 2, 31, 256, 257, 1000}) {
    std::vector<int64_t> ipiv(n);
    for (int64_t i = 0; i < n; ++i) ipiv[i] = std::min(n, i + 1 + i % 3);
    for (const bool unit_in_u : {false, true}) {
      SCOPED_TRACE(::testing::Message() << "n=" << n << " unit_in_u=" << unit_in_u);
      const auto lu = RandomVector<T>(n * n, n);
      const FactorStats on_gpu = Inspect(gpu, lu, n, unit_in_u, ipiv);
      const FactorStats on_host = Inspect(host, lu, n, unit_in_u, ipiv);
      if constexpr (kIsComplex<T>) {
        EXPECT_THAT(on_gpu.max_abs_u, Near(on_host.max_abs_u, 1e-15));
        EXPECT_NEAR(on_gpu.det_sign, on_host.det_sign, 1e-13);
        EXPECT_NEAR(on_gpu.det_sign_imaginary, on_host.det_sign_imaginary, 1e-13);
      } else {
        EXPECT_EQ(on_gpu.max_abs_u, on_host.max_abs_u);
        EXPECT_EQ(on_gpu.det_sign, on_host.det_sign);
        EXPECT_EQ(on_gpu.det_sign_imaginary, 0);
      }
      EXPECT_THAT(on_gpu.det_log_abs, Near(on_host.det_log_abs));
      EXPECT_NEAR(on_gpu.probe, on_host.probe, 1e-12 * on_host.probe);
      EXPECT_EQ(on_gpu.probe, Inspect(gpu, lu, n, unit_in_u, ipiv).probe);
    }
  }
}

TEST_F(OpsTest, MatchesTheHostsFactorStats) {
  CheckInspect<double>(*gpu_, *host_);
  CheckInspect<Complex128>(*gpu_, *host_);
  CheckInspect<Complex64>(*gpu_, *host_);
  CheckInspect<float>(*gpu_, *host_);
}

TEST_F(OpsTest, FactorStatsKeepNanAndZeroPivots) {
  constexpr int64_t kN = 300;
  std::vector<int64_t> ipiv(kN);
  std::iota(ipiv.begin(), ipiv.end(), 1);
  const auto lu = RandomVector<double>(kN * kN, 12);
  for (const auto& [i, j] : {std::pair{0, 299}, {299, 0}, {150, 150}}) {
    for (const bool unit_in_u : {false, true}) {
      auto broken = lu;
      broken[i + j * kN] = kNan;
      const FactorStats stats = Inspect(*gpu_, broken, kN, unit_in_u, ipiv);
      EXPECT_TRUE(std::isnan(stats.max_abs_u));
      EXPECT_FALSE(std::isfinite(stats.probe));
    }
  }
  auto singular = lu;
  singular[17 + 17 * kN] = 0;
  const FactorStats stats = Inspect(*gpu_, singular, kN, false, ipiv);
  EXPECT_EQ(stats.det_sign, 0);
  EXPECT_EQ(stats.det_log_abs, -kInf);
  EXPECT_FALSE(std::isnan(stats.max_abs_u));
}

}  // namespace
}  // namespace crout::ops_factor_test
