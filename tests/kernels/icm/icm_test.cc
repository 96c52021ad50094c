// SPDX-License-Identifier: Apache-2.0

// Tests the iterative Crout method: sections, sweep counts, pivoting rules, warm starts.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/host/device/host_device.h"
#include "kernels/util/sanitizers.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::icm_test {
namespace {

struct Iterated {
  Factorization factor;
  HostFactor parts;
  const IterationReport& report() const { return *factor.summary.iterations; }
  int64_t sweeps() const {
    return std::accumulate(report().sweeps.begin(), report().sweeps.end(), int64_t{0});
  }
  int64_t pivots() const {
    return std::accumulate(report().pivots.begin(), report().pivots.end(), int64_t{0});
  }
};

class IcmTest : public ::testing::Test {
 protected:
  static FactorRequest Icmpp(int64_t section_size, PivotRule rule = PivotRule::kThreshold) {
    FactorRequest request;
    request.algorithm = "icmpp";
    request.parameters.section_size = section_size;
    request.parameters.pivoting = PivotCriterion{.rule = rule};
    return request;
  }

  static FactorRequest Icm(int64_t section_size) {
    FactorRequest request;
    request.algorithm = "icm";
    request.parameters.section_size = section_size;
    return request;
  }

  Iterated Factor(const HostMatrix& a, int64_t n, const FactorRequest& request) {
    auto factor = runner_.Factor(a, n, request);
    EXPECT_OK(factor);
    auto parts = runner_.Download(*factor);
    EXPECT_OK(parts);
    return {*std::move(factor), *std::move(parts)};
  }

  static double Ratio(const HostMatrix& a, int64_t n, const Iterated& run) {
    return FactorRatio(a, n, run.parts.lu, run.parts.ipiv, run.factor.summary.unit_diagonal,
                       run.factor.summary.factor_dtype);
  }

  static FactorView ViewOf(const Factorization& factor) {
    const int64_t n = factor.summary.n;
    return {{factor.lu().data(), factor.summary.factor_dtype, n, n, n},
            factor.ipiv().as<int64_t>(),
            factor.summary.unit_diagonal};
  }

  const std::unique_ptr<Device> device_ = host::MakeDevice({});
  JobRunner runner_{*device_};
};

TEST_F(IcmTest, MatchesHandComputedFactors) {
  // [2 1; 4 5] = [2 0; 4 3] [1 1/2; 0 1], column-major. u_01 is correct after one sweep and l_11
  // after two. The third sweep changes nothing.
  Iterated run = Factor({2, 4, 1, 5}, 2, Icm(0));
  EXPECT_EQ(run.parts.lu, (HostMatrix{2, 4, 0.5, 3}));
  EXPECT_EQ(run.parts.ipiv, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(run.report().sweeps, (std::vector<int64_t>{3}));
  EXPECT_EQ(run.report().section_size, 2);
  EXPECT_FALSE(run.report().warm);
  // icmpp exchanges the rows of [0 2; 4 0].
  run = Factor({0, 4, 2, 0}, 2, Icmpp(0, PivotRule::kInterval));
  EXPECT_EQ(run.parts.lu, (HostMatrix{4, 0, 0, 2}));
  EXPECT_EQ(run.parts.ipiv, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(run.report().pivots, (std::vector<int64_t>{1}));
}

TEST_F(IcmTest, SupportsSectionsOfEverySize) {
  for (const int64_t n : {1, 2, 3, 5, 10, 31, 32, 33, 65, 129}) {
    for (const int64_t size : {1, 2, 7, 32, 33, 64, 200}) {
      SCOPED_TRACE(std::to_string(n) + " by " + std::to_string(size));
      HostMatrix a = RandomMatrix(n, n, 4);
      for (int64_t i = 0; i + 1 < n; i += 2) a[i + i * n] = 0;
      for (const PivotRule rule : {PivotRule::kThreshold, PivotRule::kPartial}) {
        const Iterated run = Factor(a, n, Icmpp(size, rule));
        EXPECT_EQ(run.report().section_size, std::min(n, size));
        EXPECT_EQ(run.report().sections, (n + size - 1) / size);
        EXPECT_LT(Ratio(a, n, run), kThreshold);
      }
    }
  }
}

TEST_F(IcmTest, FactorsOrdersAroundTheDefaultSectionSize) {
  for (const int64_t n : {63, 64, 65, 255, 256, 257, kSanitized ? 258 : 558}) {
    SCOPED_TRACE(n);
    const HostMatrix a = RandomMatrix(n, n, 4);
    const Iterated run = Factor(a, n, Icmpp(0));
    EXPECT_EQ(run.report().section_size, std::min<int64_t>(n, 64));
    EXPECT_LT(Ratio(a, n, run), kThreshold);
  }
}

// With partial pivoting, the interchanges equal those of Crout's direct method.
TEST_F(IcmTest, ExchangesRowsLikeCmppWithPartialPivoting) {
  const int64_t n = 100;
  const HostMatrix a = RandomMatrix(n, n, 8);
  FactorRequest cmpp;
  cmpp.algorithm = "cmpp";
  auto direct = runner_.Factor(a, n, cmpp);
  ASSERT_OK(direct);
  ASSERT_OK_AND_ASSIGN(const HostFactor parts, runner_.Download(*direct));
  const Iterated run = Factor(a, n, Icmpp(30, PivotRule::kPartial));
  EXPECT_EQ(run.parts.ipiv, parts.ipiv);
  for (size_t i = 0; i < parts.lu.size(); ++i) {
    ASSERT_NEAR(run.parts.lu[i], parts.lu[i], 1e-9 * (1 + std::abs(parts.lu[i])));
  }
}

TEST_F(IcmTest, FirstSectionNeedsTwoSweepsPerColumnAndOnePerPivot) {
  const int64_t n = 200;
  int64_t pivots = 0;
  for (const int64_t size : {20, 50, 65}) {
    for (const uint64_t seed : {11, 12, 13}) {
      const HostMatrix a = RandomMatrix(n, n, seed);
      FactorRequest request = Icmpp(size, PivotRule::kInterval);
      for (const double low : {0.0, 0.1, 0.3}) {
        request.parameters.pivoting->low = low;
        request.parameters.pivoting->high = 1e300;
        const Iterated run = Factor(a, n, request);
        EXPECT_EQ(run.report().sweeps[0], 2 * size + run.report().pivots[0] - 1);
        if (low == 0) {
          EXPECT_EQ(run.pivots(), 0);
        }
        pivots += run.report().pivots[0];
      }
    }
  }
  EXPECT_GT(pivots, 20);
}

TEST_F(IcmTest, AppliesThresholdToWholeColumns) {
  const int64_t n = 129;
  const HostMatrix a = RandomMatrix(n, n, 21);
  const Iterated run = Factor(a, n, Icmpp(20));
  for (int64_t j = 0; j < n; ++j) {
    double largest = 0;
    for (int64_t i = j; i < n; ++i) largest = std::max(largest, std::abs(run.parts.lu[i + j * n]));
    EXPECT_GE(std::abs(run.parts.lu[j + j * n]), 0.1 * largest * (1 - 1e-9));
  }
  EXPECT_GT(run.pivots(), 0);
  EXPECT_LT(run.pivots(), n / 2);
}

TEST_F(IcmTest, OverwritesNonFiniteTransients) {
  // l_11 starts as zero and divides row 1 of U, but its final value is -l_10 u_01.
  const int64_t n = 40;
  HostMatrix a = RandomMatrix(n, n, 3);
  for (int64_t i = 1; i < n; ++i) a[i + i * n] = 0;
  for (const int64_t size : {0, 7}) {
    const Iterated run = Factor(a, n, Icm(size));
    EXPECT_EQ(run.factor.summary.info, 0);
    EXPECT_LT(Ratio(a, n, run), 1e4 * kThreshold);  // growth, because icm does not pivot
  }
}

TEST_F(IcmTest, WarmStartGivesTheSameBits) {
  const int64_t n = 129;
  const HostMatrix before = GalleryNamed("diagonally_dominant").make(n);
  const HostMatrix a = Perturbed(before, 1e-3, 5);
  const Iterated start = Factor(before, n, Icmpp(50));
  FactorRequest request = Icmpp(50);
  const Iterated cold = Factor(a, n, request);
  request.parameters.start = ViewOf(start.factor);
  const Iterated warm = Factor(a, n, request);
  EXPECT_TRUE(warm.report().warm);
  EXPECT_EQ(warm.parts.lu, cold.parts.lu);
  EXPECT_EQ(warm.parts.ipiv, cold.parts.ipiv);
}

TEST_F(IcmTest, WarmStartsSaveSweepsWithATolerance) {
  const int64_t n = 200;
  HostMatrix a = GalleryNamed("diagonally_dominant").make(n);
  FactorRequest request = Icmpp(64);
  request.parameters.tolerance = 1e-8;
  Iterated last = Factor(a, n, request);
  const int64_t cold = last.sweeps();
  for (uint64_t step = 1; step <= 3; ++step) {
    a = Perturbed(a, 1e-5, step);
    const FactorView start = ViewOf(last.factor);
    request.parameters.start = start;
    Iterated next = Factor(a, n, request);
    EXPECT_LT(next.sweeps(), 3 * cold / 4);
    // The tolerance, not roundoff, determines the error.
    EXPECT_LT(Ratio(a, n, next) * static_cast<double>(n) * 0x1p-53, 1e-8);
    last = std::move(next);
  }
}

TEST_F(IcmTest, RescalesStartWithUnitLAndComposesItsExchanges) {
  const int64_t n = 129;
  const HostMatrix before = RandomMatrix(n, n, 6);
  const HostMatrix a = Perturbed(before, 1e-6, 7);
  ASSERT_OK_AND_ASSIGN(const Factorization start, runner_.Factor(before, n, FactorRequest{}));
  ASSERT_OK_AND_ASSIGN(const HostFactor start_parts, runner_.Download(start));
  FactorRequest request = Icmpp(40);
  request.parameters.start = ViewOf(start);
  Iterated run = Factor(a, n, request);
  EXPECT_EQ(run.pivots(), 0);  // getrf's row order is accepted
  EXPECT_EQ(run.parts.ipiv, start_parts.ipiv);
  EXPECT_LT(Ratio(a, n, run), kThreshold);
  // The row order of the start is not accepted for this matrix.
  const HostMatrix other = RandomMatrix(n, n, 60);
  run = Factor(other, n, request);
  EXPECT_GT(run.pivots(), 0);
  EXPECT_LT(Ratio(other, n, run), kThreshold);
  // With a tolerance above roundoff, a start that is nearly the solution needs only about one sweep
  // per section.
  request.parameters.tolerance = 1e-3;
  request.parameters.start = ViewOf(start);
  run = Factor(Perturbed(before, 1e-15, 1), n, request);
  EXPECT_LE(run.sweeps(), 3 * 16);
}

TEST_F(IcmTest, FactorsOnSeveralCores) {
  const int64_t n = kSanitized ? 300 : 1089;
  const HostMatrix a = RandomMatrix(n, n, 2);
  const Iterated run = Factor(a, n, Icmpp(100));
  EXPECT_LT(Ratio(a, n, run), kThreshold);
  EXPECT_EQ(Factor(a, n, Icmpp(100)).parts.lu, run.parts.lu);
}

}  // namespace
}  // namespace crout::testing::icm_test
