// SPDX-License-Identifier: Apache-2.0

// Tests the probe of a factorization: its definition, and that it distinguishes poor factors from
// good ones.
#include "kernels/numerics/factor_probe.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "kernels/host/device/host_device.h"
#include "kernels/jobs/factorize.h"
#include "kernels/numerics/normalizing_scale.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::factor_probe_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class FactorProbeTest : public ::testing::Test {
 protected:
  // Returns the device's probe for a matrix and an LU in getrf's storage, both rounded to `dtype`.
  double ProbeOf(const HostMatrix& a, const HostMatrix& lu, const std::vector<int64_t>& ipiv,
                 bool unit_in_u, DType dtype);
  double QualityOf(const HostMatrix& a, int64_t n, const FactorRequest& request);

  const std::unique_ptr<Device> device_ = host::MakeDevice({});
  JobRunner runner_{*device_};
  MatrixOps& ops_ = runner_.context().ops();
};

double FactorProbeTest::ProbeOf(const HostMatrix& a, const HostMatrix& lu,
                                const std::vector<int64_t>& ipiv, bool unit_in_u, DType dtype) {
  const auto n = static_cast<int64_t>(ipiv.size());
  std::vector<double> work(kFactorProbeVectors * n);
  std::vector<std::byte> matrix = Packed(a, n, n, dtype);
  std::vector<std::byte> factor = Packed(lu, n, n, dtype);
  const FactorProbe probe{n, 1, work.data()};
  EXPECT_OK(ops_.StartProbe({matrix.data(), dtype, n, n, n}, probe));
  EXPECT_OK(ops_.InspectFactor({factor.data(), dtype, n, n, n}, unit_in_u, ipiv.data(), probe));
  return runner_.context().report().factor.probe;
}

// |z^T (A - P^T L U)|_inf, in long double.
double ProbeByDefinition(const HostMatrix& a, const HostMatrix& lu,
                         const std::vector<int64_t>& ipiv, bool unit_in_u) {
  const auto n = static_cast<int64_t>(ipiv.size());
  HostMatrix pa = a;
  std::vector<double> z(n);
  for (int64_t i = 0; i < n; ++i) z[i] = ProbeWeight(i);
  for (int64_t i = 0; i < n; ++i) {
    std::swap(z[i], z[ipiv[i] - 1]);
    for (int64_t j = 0; j < n; ++j) std::swap(pa[i + j * n], pa[ipiv[i] - 1 + j * n]);
  }
  long double largest = 0;
  for (int64_t j = 0; j < n; ++j) {
    long double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      long double product = 0;
      for (int64_t k = 0; k <= std::min(i, j); ++k) {
        const long double l = k == i && !unit_in_u ? 1 : lu[i + k * n];
        const long double u = k == j && unit_in_u ? 1 : lu[k + j * n];
        product += l * u;
      }
      sum += z[i] * (pa[i + j * n] - product);
    }
    largest = std::max(largest, std::abs(sum));
  }
  return static_cast<double>(largest);
}

double FactorProbeTest::QualityOf(const HostMatrix& a, int64_t n, const FactorRequest& request) {
  const auto factor = runner_.Factor(a, n, request);
  EXPECT_OK(factor);
  EXPECT_TRUE(factor.ok() && factor->summary.quality.has_value());
  return factor.ok() ? factor->summary.quality.value_or(-1) : -1;
}

TEST(ProbeWeightTest, HasRandomSignsAndFewBits) {
  constexpr int64_t kCount = 100'000;
  double sum = 0;
  double neighbours = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    const double z = ProbeWeight(i);
    EXPECT_GE(std::abs(z), 0.5);
    EXPECT_LT(std::abs(z), 1);
    EXPECT_EQ(z * 0x1p21, std::floor(z * 0x1p21));
    sum += z;
    neighbours += z * ProbeWeight(i + 1);
  }
  // The sum is within four standard deviations of 0.
  EXPECT_LT(std::abs(sum), 4 * std::sqrt(kCount));
  EXPECT_LT(std::abs(neighbours), 4 * std::sqrt(kCount));
}

TEST(FactorQualityTest, KeepsNonFiniteValuesAndStaysInRange) {
  const FactorProbe one{4, 1, nullptr};
  EXPECT_EQ(FactorQuality(0x1p-50, one, 4, DType::kFloat64), 1);
  EXPECT_EQ(FactorQuality(0, one, 0, DType::kFloat64), 0);
  EXPECT_EQ(FactorQuality(1, one, 0, DType::kFloat64), kInfinity);
  EXPECT_EQ(FactorQuality(NAN, one, 1, DType::kFloat64), kInfinity);
  EXPECT_EQ(FactorQuality(kInfinity, one, kInfinity, DType::kFloat64), kInfinity);
  // The entries are in range, but sums of columns may overflow.
  const FactorProbe huge{4, NormalizingScale(1e308), nullptr};
  EXPECT_GT(FactorQuality(1, huge, kInfinity, DType::kFloat64), 1e8);
  EXPECT_GT(NormalizingScale(5e-324), 0x1p990);
  EXPECT_TRUE(std::isfinite(NormalizingScale(5e-324)));
  EXPECT_EQ(NormalizingScale(0), 1);
  EXPECT_EQ(NormalizingScale(5), 0.25);
  EXPECT_EQ(ProbeScale(5), 0.25);
  EXPECT_EQ(ProbeScale(0x1p-700), 0x1p500);
}

TEST_F(FactorProbeTest, MatchesItsDefinition) {
  for (const int64_t n : {1, 2, 3, 8, 31, 100}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      for (const bool unit_in_u : {false, true}) {
        SCOPED_TRACE(::testing::Message() << n << " " << NameOf(dtype) << " " << unit_in_u);
        const HostMatrix a = Rounded(RandomMatrix(n, n, 1), dtype);
        const HostMatrix lu = Rounded(RandomMatrix(n, n, 2), dtype);
        std::vector<int64_t> ipiv(n);
        for (int64_t i = 0; i < n; ++i) ipiv[i] = std::min(n, i + 1 + i % 3);
        const double expected = ProbeByDefinition(a, lu, ipiv, unit_in_u);
        EXPECT_NEAR(ProbeOf(a, lu, ipiv, unit_in_u, dtype), expected, 1e-13 * expected * n);
      }
    }
  }
}

TEST_F(FactorProbeTest, KeepsNanAndInfAtEveryPosition) {
  constexpr int64_t kN = 19;
  const HostMatrix lu = RandomMatrix(kN, kN, 2);
  std::vector<int64_t> ipiv(kN);
  for (int64_t i = 0; i < kN; ++i) ipiv[i] = kN;
  for (const bool unit_in_u : {false, true}) {
    for (int64_t k = 0; k < kN * kN; ++k) {
      for (const double bad : {NAN, INFINITY}) {
        HostMatrix broken = lu;
        broken[k] = bad;
        EXPECT_FALSE(std::isfinite(ProbeOf(lu, broken, ipiv, unit_in_u, DType::kFloat64))) << k;
      }
    }
  }
}

TEST_F(FactorProbeTest, EstimatesTheFactorRatio) {
  for (const int64_t n : {33, 129, 300}) {
    const HostMatrix a = RandomMatrix(n, n, n);
    for (const char* algorithm : {"getrf", "gem", "cmpp", "icmpp"}) {
      for (const EquilibrateMode mode : {EquilibrateMode::kOff, EquilibrateMode::kOn}) {
        SCOPED_TRACE(::testing::Message() << algorithm << " " << n);
        FactorRequest request;
        request.algorithm = algorithm;
        request.matrix_dtype = request.factor_dtype = DType::kFloat32;
        request.equilibrate = mode;
        ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a, n, request));
        ASSERT_OK_AND_ASSIGN(const HostFactor parts, runner_.Download(factor));
        HostMatrix factored = Rounded(a, DType::kFloat32);
        if (mode == EquilibrateMode::kOn) {
          const double* scales = factor.scales().as<double>();
          for (int64_t k = 0; k < n * n; ++k) factored[k] *= scales[k % n] * scales[n + k / n];
        }
        const double ratio = FactorRatio(factored, n, parts.lu, parts.ipiv,
                                         factor.summary.unit_diagonal, DType::kFloat32);
        EXPECT_LT(*factor.summary.quality, ratio * 10);
        EXPECT_GT(*factor.summary.quality, ratio / 10);
        EXPECT_FALSE(factor.summary.is_poor());
      }
    }
  }
}

// A factor has a good quality if its growth is finite, except for a threshold that grows with the
// growth of Wilkinson's matrix.
TEST_F(FactorProbeTest, DoesNotWarnOfGoodFactors) {
  for (const GalleryKind& kind : Gallery()) {
    for (const int64_t n : {1, 2, 10, 129}) {
      for (const char* algorithm : {"getrf", "cmpp"}) {
        SCOPED_TRACE(::testing::Message() << algorithm << " " << kind.name << " " << n);
        FactorRequest request;
        request.algorithm = algorithm;
        const auto factor = runner_.Factor(kind.make(n), n, request);
        ASSERT_OK(factor);
        EXPECT_EQ(factor->summary.quality.has_value(), factor->summary.info == 0);
        EXPECT_FALSE(factor->summary.info > 0 && factor->summary.is_poor());
        if (factor->summary.info > 0) continue;
        const double threshold =
            kind.name == "gfpp" ? kPoorQuality * factor->summary.pivot_growth : kPoorQuality;
        if (std::isfinite(factor->summary.pivot_growth)) {
          EXPECT_LT(*factor->summary.quality, threshold);
        } else {
          EXPECT_EQ(*factor->summary.quality, kInfinity);
        }
      }
    }
  }
}

TEST_F(FactorProbeTest, ReportsPoorQualityAfterSmallPivotWithoutPivoting) {
  constexpr int64_t kN = 120;
  HostMatrix a = RandomMatrix(kN, kN, 1);
  a[0] = 1e-10;
  FactorRequest request;
  for (const char* algorithm : {"cm", "block_lu", "icm"}) {
    request.algorithm = algorithm;
    ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a, kN, request));
    EXPECT_EQ(factor.summary.info, 0);
    EXPECT_GT(*factor.summary.quality, 1000) << algorithm;
    EXPECT_TRUE(factor.summary.is_poor());
  }
  request.algorithm = "cmpp";
  EXPECT_LT(QualityOf(a, kN, request), 1);
}

TEST_F(FactorProbeTest, ReportsPoorQualityOfLargeTolerance) {
  constexpr int64_t kN = 90;
  const HostMatrix a = GalleryNamed("diagonally_dominant").make(kN);
  FactorRequest request;
  request.algorithm = "icm";
  request.parameters.section_size = 90;
  EXPECT_LT(QualityOf(a, kN, request), 1);
  request.parameters.tolerance = 0.9;
  EXPECT_GT(QualityOf(a, kN, request), 1000);
}

TEST_F(FactorProbeTest, StaysInRangeForExtremeEntries) {
  FactorRequest request;
  for (const char* name : {"near_overflow_f64", "near_underflow_f64"}) {
    EXPECT_LT(QualityOf(GalleryNamed(name).make(129), 129, request), 1) << name;
  }
  // The column sums overflow.
  HostMatrix a = GalleryNamed("diagonally_dominant").make(40);
  double largest = 0;
  for (const double v : a) largest = std::max(largest, std::abs(v));
  for (double& v : a) v *= 1.5e308 / largest;
  EXPECT_LT(QualityOf(a, 40, request), 100);
}

TEST_F(FactorProbeTest, DoesNotDependOnStoringTheMatrix) {
  constexpr int64_t kN = 150;
  const HostMatrix a = RandomMatrix(kN, kN, 5);
  FactorRequest request;
  const double quality = QualityOf(a, kN, request);
  EXPECT_GT(quality, 0);
  EXPECT_EQ(QualityOf(a, kN, request), quality);
  request.keep_matrix = false;
  EXPECT_EQ(QualityOf(a, kN, request), quality);
  request.layout = Layout::kRowMajor;  // sums the norm in another order
  EXPECT_NEAR(QualityOf(a, kN, request) / quality, 1, 1e-13);
  EXPECT_EQ(QualityOf({}, 0, request), 0);
}

}  // namespace
}  // namespace crout::testing::factor_probe_test
