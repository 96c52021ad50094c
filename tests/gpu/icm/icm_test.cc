// SPDX-License-Identifier: Apache-2.0

// Tests the iterative Crout method on the GPU: LAPACK's ratios, compared with the host's Crout
// method, and the report of the iterations.
#include <algorithm>
#include <cmath>
#include <random>

#include "gmock/gmock.h"
#include "kernels/jobs/factorize.h"
#include "tests/gpu/harness/jobs.h"
#include "tests/support/ratios.h"

namespace crout::icm_test {
namespace {

using ::crout::testing::GalleryNamed;
using ::crout::testing::kThreshold;
using ::crout::testing::Rounded;

constexpr int64_t kSizes[] = {1, 2, 3, 5, 31, 32, 33, 129, 255, 256, 257, 558, 1089};

// Returns a matrix like Cejka's, with entries uniform in [-1000, 1000]. Each diagonal entry except
// the last is zero with probability 1/2.
HostMatrix Cejka(int64_t n) {
  HostMatrix a = testing::RandomMatrix(n, n, n);
  std::mt19937_64 generator(n + 1);
  for (double& v : a) v *= 1000;
  for (int64_t i = 0; i + 1 < n; ++i) {
    if (generator() % 2 == 0) a[i + i * n] = 0;
  }
  return a;
}

// Returns a row diagonally dominant matrix after `step` random changes. Each changes every entry by
// a relative amount of at most `change`.
HostMatrix Dominant(int64_t n, int step = 0, double change = 0) {
  HostMatrix a = testing::RandomMatrix(n, n, 7 * n);
  for (int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += std::abs(a[i + j * n]);
    a[i + i * n] = 2 * sum;
  }
  for (int s = 1; s <= step; ++s) {
    const HostMatrix noise = testing::RandomMatrix(n, n, 1000 + s);
    for (int64_t e = 0; e < n * n; ++e) a[e] *= 1 + change * noise[e];
  }
  return a;
}

int64_t Total(const std::vector<int64_t>& counts) {
  int64_t total = 0;
  for (const int64_t count : counts) total += count;
  return total;
}

class GpuIcmTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped()) gpu_ = std::make_unique<Bench>(Gpu());
  }

  FactorizeOptions Options(DType dtype, std::string_view algorithm = "icmpp") {
    FactorizeOptions options = OptionsOf(Gpu(), dtype, algorithm);
    options.equilibrate = EquilibrateMode::kOff;
    return options;
  }
  FactorizeOptions Options(DType dtype, PivotRule rule) {
    FactorizeOptions options = Options(dtype);
    options.parameters.pivoting = PivotCriterion{.rule = rule};
    return options;
  }
  absl::StatusOr<Factorization> Factor(const HostMatrix& a, int64_t n,
                                       const FactorizeOptions& options) {
    return gpu_->jobs().Factor(a, n, options.factor_dtype, Layout::kColumnMajor, options);
  }
  double HostRatio(const HostMatrix& a, int64_t n, DType dtype) {
    Bench host(Host());
    FactorizeOptions options = OptionsOf(Host(), dtype, "cmpp");
    options.equilibrate = EquilibrateMode::kOff;
    auto factor = host.jobs().Factor(a, n, dtype, Layout::kColumnMajor, options);
    return factor.ok() ? FactorRatioOf(host, *factor, a) : HUGE_VAL;
  }
  void CheckShape(const IterationReport& report, int64_t n) {
    EXPECT_EQ(report.sections, (n + report.section_size - 1) / report.section_size);
    ASSERT_EQ(report.sweeps.size(), static_cast<size_t>(report.sections * report.sections));
    ASSERT_EQ(report.pivots.size(), static_cast<size_t>(report.sections));
  }

  std::unique_ptr<Bench> gpu_;
};

TEST_F(GpuIcmTest, PublishedMatricesPassLapacksRatioByEveryRule) {
  for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
    for (const int64_t n : kSizes) {
      const HostMatrix a = Rounded(Cejka(n), dtype);
      for (const PivotRule rule :
           {PivotRule::kPartial, PivotRule::kThreshold, PivotRule::kInterval}) {
        SCOPED_TRACE(::testing::Message()
                     << "n=" << n << " " << NameOf(dtype) << " rule " << static_cast<int>(rule));
        auto factor = Factor(a, n, Options(dtype, rule));
        ASSERT_TRUE(factor.ok()) << factor.status();
        EXPECT_EQ(factor->summary.info, 0);
        CheckShape(*factor->summary.iterations, n);
        const double ratio = FactorRatioOf(*gpu_, *factor, a);
        // An absolute interval does not bound the growth. A large ratio requires a large reported
        // growth.
        if (rule == PivotRule::kInterval && ratio >= kThreshold) {
          EXPECT_GT(factor->summary.pivot_growth, 100);
          continue;
        }
        EXPECT_LT(ratio, kThreshold);
      }
    }
  }
}

TEST_F(GpuIcmTest, PassesTheGalleryWhereverTheHostDoes) {
  for (const testing::GalleryKind& kind : testing::Gallery()) {
    for (const int64_t n : {1, 2, 3, 10, 33, 129}) {
      for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
        if (dtype == DType::kFloat32 && kind.name.find("f64") != std::string::npos) continue;
        SCOPED_TRACE(::testing::Message() << kind.name << " n=" << n << " " << NameOf(dtype));
        const HostMatrix a = Rounded(kind.make(n), dtype);
        auto factor = Factor(a, n, Options(dtype));
        const double host = HostRatio(a, n, dtype);
        if (!factor.ok() && host >= kThreshold) continue;  // overflow of the type
        ASSERT_TRUE(factor.ok()) << factor.status();
        if (kind.singular_at(n) != 0) {
          EXPECT_EQ(factor->summary.info, kind.singular_at(n));
        }
        if (host < kThreshold) {
          EXPECT_LT(FactorRatioOf(*gpu_, *factor, a), kThreshold);
        }
      }
    }
  }
}

TEST_F(GpuIcmTest, SupportsSectionsOfEverySize) {
  for (const int64_t n : {100, 558}) {
    const HostMatrix a = Cejka(n);
    const HostMatrix dominant = Dominant(n);
    for (const int64_t section : {1, 33, 64, 250, 256, 520, 5000}) {
      SCOPED_TRACE(::testing::Message() << "n=" << n << " section " << section);
      FactorizeOptions options = Options(DType::kFloat64);
      options.parameters.section_size = section;
      auto factor = Factor(a, n, options);
      ASSERT_TRUE(factor.ok()) << factor.status();
      EXPECT_LT(FactorRatioOf(*gpu_, *factor, a), kThreshold);
      options = Options(DType::kFloat64, "icm");
      options.parameters.section_size = section;
      factor = Factor(dominant, n, options);
      ASSERT_TRUE(factor.ok()) << factor.status();
      EXPECT_LT(FactorRatioOf(*gpu_, *factor, dominant), kThreshold);
      CheckShape(*factor->summary.iterations, n);
    }
  }
}

TEST_F(GpuIcmTest, NeedsThePredictedNumberOfSynchronousSweeps) {
  constexpr int64_t kN = 300;
  const HostMatrix a = Dominant(kN);
  for (const int64_t section : {32, 64, 96}) {
    FactorizeOptions options = Options(DType::kFloat64, "icm");
    options.parameters.section_size = section;
    auto factor = Factor(a, kN, options);
    ASSERT_TRUE(factor.ok()) << factor.status();
    // The number of sweeps is at most the depth of the recurrence. Rounding may make the last
    // elements final earlier.
    const IterationReport& report = *factor->summary.iterations;
    EXPECT_LE(report.sweeps[0], 2 * section - 1);
    EXPECT_EQ(Total(report.pivots), 0);
    EXPECT_FALSE(report.warm);
  }
}

// The report counts executed sweeps. With the interval rule, these are the sweeps up to the first
// bad element. The following search by columns is not a sweep (decision 0007).
TEST_F(GpuIcmTest, IntervalRuleSweepsToTheFirstBadElementThenSearches) {
  constexpr int64_t kN = 200;
  int runs = 0;
  int exact = 0;
  int searched = 0;
  for (const int64_t section : {32, 64, 96}) {
    for (const uint64_t seed : {11, 12, 13}) {
      const HostMatrix a = testing::RandomMatrix(kN, kN, seed);
      for (const double low : {0.0, 0.1, 0.3}) {
        SCOPED_TRACE(::testing::Message() << section << " seed " << seed << " low " << low);
        FactorizeOptions options = Options(DType::kFloat64, PivotRule::kInterval);
        options.parameters.section_size = section;
        options.parameters.pivoting->low = low;
        options.parameters.pivoting->high = 1e300;
        auto factor = Factor(a, kN, options);
        ASSERT_TRUE(factor.ok()) << factor.status();
        const IterationReport& report = *factor->summary.iterations;
        const HostFactor parts = *gpu_->jobs().Download(*factor);
        int64_t bad = 0;
        while (bad < section && parts.ipiv[bad] == bad + 1) ++bad;
        int64_t predicted = 2 * section - 1;
        if (bad < section) {
          EXPECT_GT(report.pivots[0], 0);
          // Element b is final after 2 b sweeps. The next sweep detects this, but never the first.
          predicted = std::max<int64_t>(2 * bad + 1, 2);
          ++searched;
        }
        // Rounding may make the last elements final a few sweeps earlier.
        EXPECT_LE(report.sweeps[0], predicted);
        EXPECT_GE(report.sweeps[0], predicted - predicted / 16);
        exact += report.sweeps[0] == predicted;
        ++runs;
      }
    }
  }
  RecordProperty("exact", exact);
  EXPECT_GE(2 * exact, runs);
  EXPECT_GE(searched, runs / 3);
  EXPECT_LT(searched, runs);
}

TEST_F(GpuIcmTest, ReportsNoSweepsOfSearchedSections) {
  auto factor = Factor(Cejka(200), 200, Options(DType::kFloat64));
  ASSERT_TRUE(factor.ok()) << factor.status();
  const IterationReport& report = *factor->summary.iterations;
  ASSERT_GT(report.sections, 2);
  for (int64_t j = 0; j < report.sections; ++j) {
    for (int64_t i = 0; i < report.sections; ++i) {
      const int64_t sweeps = report.sweeps[i + j * report.sections];
      if (i < j) {
        EXPECT_GT(sweeps, 0) << i << ", " << j;
      } else {
        EXPECT_EQ(sweeps, 0) << i << ", " << j;
      }
    }
  }
  EXPECT_FALSE(report.total_bad_elements.has_value());
  EXPECT_EQ(report.variant, MethodVariant::kFast);
}

TEST_F(GpuIcmTest, AppliesAbsoluteToleranceInFastVariant) {
  constexpr int64_t kN = 300;
  const HostMatrix a = Dominant(kN);
  FactorizeOptions options = Options(DType::kFloat64, "icm");
  auto exact = Factor(a, kN, options);
  options.parameters.absolute_tolerance = 0.1;
  auto loose = Factor(a, kN, options);
  ASSERT_TRUE(exact.ok() && loose.ok()) << loose.status();
  EXPECT_LT(Total(loose->summary.iterations->sweeps), Total(exact->summary.iterations->sweeps) / 2);
}

TEST_F(GpuIcmTest, ReportsZeroDiagonalWithoutPivoting) {
  HostMatrix a = Dominant(70);
  a[0] = 0;
  auto factor = Factor(a, 70, Options(DType::kFloat64, "icm"));
  ASSERT_TRUE(factor.ok()) << factor.status();
  EXPECT_EQ(factor->summary.info, 1);
}

TEST_F(GpuIcmTest, AbortsAtSweepLimit) {
  for (const char* algorithm : {"icm", "icmpp"}) {
    FactorizeOptions options = Options(DType::kFloat64, algorithm);
    options.parameters.sweep_limit = 5;
    const auto factor = Factor(Cejka(200), 200, options);
    EXPECT_EQ(factor.status().code(), absl::StatusCode::kAborted) << factor.status();
  }
}

TEST_F(GpuIcmTest, ReportsPositionOfOverflow) {
  HostMatrix a = testing::RandomMatrix(40, 40, 3);
  a[0] = 1e-300;
  for (int64_t i = 1; i < 40; ++i) a[i] = a[i * 40] = 1e200;
  const auto factor = Factor(a, 40, Options(DType::kFloat64, "icm"));
  EXPECT_EQ(factor.status().code(), absl::StatusCode::kInvalidArgument) << factor.status();
}

TEST_F(GpuIcmTest, GivesTheSameBitsTwice) {
  for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
    const HostMatrix a = Cejka(558);
    auto one = Factor(a, 558, Options(dtype));
    auto two = Factor(a, 558, Options(dtype));
    ASSERT_TRUE(one.ok() && two.ok());
    EXPECT_TRUE(SameBits(gpu_->jobs().Download(*one)->lu, gpu_->jobs().Download(*two)->lu));
    EXPECT_EQ(gpu_->jobs().Download(*one)->ipiv, gpu_->jobs().Download(*two)->ipiv);
  }
}

TEST_F(GpuIcmTest, ChoosesTheHostsPivots) {
  for (const int64_t n : {33, 257, 558}) {
    const HostMatrix a = Cejka(n);
    auto factor = Factor(a, n, Options(DType::kFloat64, PivotRule::kPartial));
    ASSERT_TRUE(factor.ok()) << factor.status();
    Bench host(Host());
    FactorizeOptions options = OptionsOf(Host(), DType::kFloat64, "cmpp");
    options.equilibrate = EquilibrateMode::kOff;
    auto oracle = host.jobs().Factor(a, n, DType::kFloat64, Layout::kColumnMajor, options);
    ASSERT_TRUE(oracle.ok());
    const HostFactor ours = *gpu_->jobs().Download(*factor);
    EXPECT_EQ(ours.ipiv, host.jobs().Download(*oracle)->ipiv);
    int64_t interchanges = 0;
    for (int64_t i = 0; i < n; ++i) interchanges += ours.ipiv[i] != i + 1;
    EXPECT_EQ(Total(factor->summary.iterations->pivots), interchanges);
  }
}

class GpuIcmWarmTest : public GpuIcmTest {
 protected:
  FactorizeOptions Warm(const Factorization& start, FactorizeOptions options, double tolerance) {
    const int64_t n = start.summary.n;
    options.parameters.start = FactorView{{start.lu().data(), start.summary.factor_dtype, n, n, n},
                                          start.ipiv().as<int64_t>(),
                                          start.summary.unit_diagonal};
    options.parameters.tolerance = tolerance;
    return options;
  }
};

TEST_F(GpuIcmWarmTest, NeedsFewerSweepsForTheSameAccuracy) {
  for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
    const double tolerance = dtype == DType::kFloat64 ? 1e-14 : 1e-6;
    for (const int64_t n : {5, 33, 257, 558}) {
      for (const char* from : {"getrf", "icmpp"}) {
        SCOPED_TRACE(::testing::Message() << "n=" << n << " " << NameOf(dtype) << " " << from);
        auto start = Factor(Rounded(Dominant(n), dtype), n, Options(dtype, from));
        ASSERT_TRUE(start.ok()) << start.status();
        const HostMatrix next = Rounded(Dominant(n, 1, 1e-5), dtype);
        auto warm = Factor(next, n, Warm(*start, Options(dtype), tolerance));
        ASSERT_TRUE(warm.ok()) << warm.status();
        EXPECT_TRUE(warm->summary.iterations->warm);
        EXPECT_EQ(Total(warm->summary.iterations->pivots), 0);
        EXPECT_LT(FactorRatioOf(*gpu_, *warm, next), kThreshold);
        FactorizeOptions cold_options = Options(dtype, "icm");
        cold_options.parameters.tolerance = tolerance;
        auto cold = Factor(next, n, cold_options);
        ASSERT_TRUE(cold.ok()) << cold.status();
        if (n < 33) continue;
        EXPECT_LT(Total(warm->summary.iterations->sweeps), Total(cold->summary.iterations->sweeps));
      }
    }
  }
}

// The start's pivots are unsuitable for the new matrix. The device detects this and searches for
// new pivots.
TEST_F(GpuIcmWarmTest, GivesTheSameAccuracyWithUselessStarts) {
  for (const int64_t n : {33, 257, 558}) {
    for (const char* from : {"getrf", "icmpp"}) {
      for (const PivotRule rule :
           {PivotRule::kPartial, PivotRule::kThreshold, PivotRule::kInterval}) {
        SCOPED_TRACE(::testing::Message() << n << " " << from << " " << static_cast<int>(rule));
        auto start = Factor(Cejka(n), n, Options(DType::kFloat64, from));
        ASSERT_TRUE(start.ok()) << start.status();
        HostMatrix other = testing::RandomMatrix(n, n, 99);
        other[0] = 0;
        auto warm = Factor(other, n, Warm(*start, Options(DType::kFloat64, rule), 0));
        ASSERT_TRUE(warm.ok()) << warm.status();
        const double ratio = FactorRatioOf(*gpu_, *warm, other);
        if (rule == PivotRule::kInterval && ratio >= kThreshold) {
          EXPECT_GT(warm->summary.pivot_growth, 100);
          continue;
        }
        EXPECT_LT(ratio, kThreshold);
        if (rule == PivotRule::kPartial) {
          EXPECT_GT(Total(warm->summary.iterations->pivots), 0);
        }
      }
    }
  }
}

// The matrix is diagonally dominant only after the start's permutation of its rows.
TEST_F(GpuIcmWarmTest, AppliesThePermutationOfTheStartFirst) {
  constexpr int64_t kN = 558;
  const auto shuffled = [](const HostMatrix& a) {
    HostMatrix out(a.size());
    for (int64_t e = 0; e < kN * kN; ++e) out[(e % kN * 5 + 3) % kN + e / kN * kN] = a[e];
    return out;
  };
  for (const char* from : {"getrf", "icmpp"}) {
    auto start = Factor(shuffled(Dominant(kN)), kN, Options(DType::kFloat64, from));
    ASSERT_TRUE(start.ok());
    const HostMatrix next = shuffled(Dominant(kN, 1, 1e-6));
    auto warm = Factor(next, kN, Warm(*start, Options(DType::kFloat64), 1e-14));
    ASSERT_TRUE(warm.ok()) << warm.status();
    EXPECT_LT(FactorRatioOf(*gpu_, *warm, next), kThreshold);
    EXPECT_EQ(Total(warm->summary.iterations->pivots), 0);
    EXPECT_EQ(gpu_->jobs().Download(*warm)->ipiv, gpu_->jobs().Download(*start)->ipiv);
  }
}

TEST_F(GpuIcmTest, ReportsProgress) {
  constexpr int64_t kN = 2048;
  const HostMatrix a = Dominant(kN);
  ExpectColumnsReported(*gpu_, a, kN, Options(DType::kFloat64, "icm"));
  for (const PivotRule rule : {PivotRule::kPartial, PivotRule::kThreshold, PivotRule::kInterval}) {
    SCOPED_TRACE(static_cast<int>(rule));
    ExpectColumnsReported(*gpu_, a, kN, Options(DType::kFloat64, rule));
  }
}

TEST_F(GpuIcmWarmTest, ReportsProgress) {
  constexpr int64_t kN = 2048;
  auto start = Factor(Dominant(kN), kN, Options(DType::kFloat64, "getrf"));
  ASSERT_TRUE(start.ok()) << start.status();
  // The first matrix needs only sweeps. The second also needs a search by columns in every section.
  for (const HostMatrix& next : {Dominant(kN, 1, 1e-5), Cejka(kN)}) {
    ExpectColumnsReported(*gpu_, next, kN, Warm(*start, Options(DType::kFloat64), 0));
  }
}

TEST_F(GpuIcmTest, StopsOnRequest) {
  constexpr int64_t kN = 2048;
  const HostMatrix a = Cejka(kN);
  FactorizeOptions options = Options(DType::kFloat64);
  Buffer upload = gpu_->Put(a);
  KernelTimings timings;
  int64_t columns = 0;
  const auto stop = [&] {
    columns = gpu_->context().report().ColumnsDone();
    return columns > 0;  // stops only while the kernels run
  };
  const auto factor =
      Factorize(gpu_->context(), std::move(upload),
                {nullptr, DType::kFloat64, Layout::kColumnMajor, kN, kN}, options, stop, timings);
  EXPECT_EQ(factor.status().code(), absl::StatusCode::kCancelled) << factor.status();
  EXPECT_GT(columns, 0);
  EXPECT_LT(columns, kN);
  // The context is still usable.
  auto again = Factor(a, kN, Options(DType::kFloat64));
  EXPECT_TRUE(again.ok()) << again.status();
}

}  // namespace
}  // namespace crout::icm_test
