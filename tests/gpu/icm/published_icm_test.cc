// SPDX-License-Identifier: Apache-2.0

// Tests the published variant of the iterative Crout method on the GPU. Counts and bits must equal
// the host's, which reproduces the published counts.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/jobs/factorize.h"
#include "tests/gpu/harness/jobs.h"
#include "tests/support/matrices/matrices.h"
#include "tests/support/ratios.h"

namespace crout::published_icm_test {
namespace {

using ::crout::testing::kThreshold;

class GpuPublishedIcmTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped()) gpu_ = std::make_unique<Bench>(Gpu());
  }

  static FactorizeOptions Options(Device& device, DType dtype, std::string_view algorithm) {
    FactorizeOptions options = OptionsOf(device, dtype, algorithm);
    options.equilibrate = EquilibrateMode::kOff;
    options.parameters.variant = MethodVariant::kPublished;
    return options;
  }

  // Factors on GPU and host with `parameters`, and compares the reports and the bits of the
  // factors.
  void ExpectTheHosts(const HostMatrix& a, int64_t n, DType dtype, std::string_view algorithm,
                      const LuParameters& parameters = {}) {
    Bench host(Host());
    FactorizeOptions on_host = Options(Host(), dtype, algorithm);
    FactorizeOptions on_gpu = Options(Gpu(), dtype, algorithm);
    for (FactorizeOptions* options : {&on_host, &on_gpu}) {
      options->parameters = parameters;
      options->parameters.variant = MethodVariant::kPublished;
    }
    auto expected = host.jobs().Factor(a, n, dtype, Layout::kColumnMajor, on_host);
    auto factor = gpu_->jobs().Factor(a, n, dtype, Layout::kColumnMajor, on_gpu);
    ASSERT_EQ(factor.status().code(), expected.status().code()) << factor.status();
    if (!expected.ok()) return;
    EXPECT_EQ(factor->summary.info, expected->summary.info);
    const IterationReport& theirs = *expected->summary.iterations;
    const IterationReport& ours = *factor->summary.iterations;
    EXPECT_EQ(ours.variant, MethodVariant::kPublished);
    EXPECT_EQ(ours.section_size, theirs.section_size);
    EXPECT_EQ(ours.block_size, theirs.block_size);
    ExpectSweeps(ours.sweeps, theirs.sweeps, expected->summary.info != 0);
    EXPECT_EQ(ours.pivots, theirs.pivots);
    EXPECT_EQ(ours.bad_elements, theirs.bad_elements);
    EXPECT_EQ(ours.total_bad_elements, theirs.total_bad_elements);
    if (expected->summary.info != 0) return;
    EXPECT_EQ(gpu_->jobs().Download(*factor)->ipiv, host.jobs().Download(*expected)->ipiv);
    EXPECT_EQ(gpu_->jobs().Download(*factor)->lu, host.jobs().Download(*expected)->lu);
  }

  // Expects equal numbers of sweeps, unless the matrix is singular. The host then ends a section
  // when an Inf or NaN is final. The GPU ends it when nothing changes, which may be one sweep
  // later: Inf becomes NaN in that sweep, which the published method does not count as a change.
  template <class Sweeps>
  static void ExpectSweeps(const Sweeps& ours, const Sweeps& theirs, bool singular) {
    ASSERT_EQ(ours.size(), theirs.size());
    for (size_t i = 0; i < ours.size(); ++i) {
      EXPECT_GE(ours[i], theirs[i]) << i;
      EXPECT_LE(ours[i], theirs[i] + (singular ? 1 : 0)) << i;
    }
  }

  // Returns a matrix whose entries and diagonal zeros have the distribution of the published dense
  // matrices.
  static HostMatrix Dense(int64_t n) {
    HostMatrix a = testing::RandomMatrix(n, n, 5);
    const HostMatrix coin = testing::RandomMatrix(n, 1, 6);
    for (double& x : a) x *= 1000;
    for (int64_t i = 0; i + 1 < n; ++i) {
      if (coin[i] < 0) a[i + i * n] = 0;
    }
    return a;
  }

  std::unique_ptr<Bench> gpu_;
};

TEST_F(GpuPublishedIcmTest, MatchesThePublishedMapsOfSharedMatrices) {
  if (!testing::MatricesDirectory()) GTEST_SKIP() << "no shared matrices: set CROUT_MATRICES";
  int found = 0;
  for (const testing::RealMatrix& real : testing::RealMatrixIndex()) {
    for (const char* name : {"bcsstk01.", "bcsstk02.", "bcsstk03.", "lns_131.", "west0067.",
                             "west0156.", "685_bus.", "hb/bp_0.", "hb/bp_1400."}) {
      if (real.field == "complex" || real.file.find(name) == std::string::npos) continue;
      SCOPED_TRACE(real.file);
      const auto a = testing::ReadRealMatrix(real);
      ASSERT_TRUE(a.ok()) << a.status();
      ExpectTheHosts(*a, real.n, DType::kFloat64, "icmpp");
      ++found;
    }
  }
  EXPECT_GE(found, 9);
}

TEST_F(GpuPublishedIcmTest, MatchesTheHostForBlocksSectionsAndRules) {
  for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
    for (const int64_t n : {1, 33, 129, 558}) {
      const HostMatrix a = testing::Rounded(Dense(n), dtype);
      for (const int block : {8, 16, 32}) {
        SCOPED_TRACE(::testing::Message() << n << " " << NameOf(dtype) << " blocks of " << block);
        LuParameters parameters;
        parameters.block_size = block;
        ExpectTheHosts(a, n, dtype, "icmpp", parameters);
        parameters.section_size = 50;
        ExpectTheHosts(a, n, dtype, "icmpp", parameters);
        parameters.pivoting = PivotCriterion{.rule = PivotRule::kPartial};
        ExpectTheHosts(a, n, dtype, "icmpp", parameters);
      }
    }
  }
}

TEST_F(GpuPublishedIcmTest, MatchesTheHostForTolerancesLimitsAndSingularMatrices) {
  constexpr int64_t kN = 200;
  HostMatrix a = testing::GalleryNamed("diagonally_dominant").make(kN);
  for (const double tolerance : {1e-10, 1e-5, 1e-2, 0.1, 1.0}) {
    LuParameters parameters;
    parameters.absolute_tolerance = tolerance;
    parameters.section_size = 70;
    ExpectTheHosts(a, kN, DType::kFloat64, "icm", parameters);
  }
  LuParameters limited;
  limited.sweep_limit = 3;
  ExpectTheHosts(a, kN, DType::kFloat64, "icmpp", limited);
  for (const char* name : {"zero", "zero_first_column", "zero_half_columns", "zero_last_column"}) {
    for (const char* algorithm : {"icm", "icmpp"}) {
      SCOPED_TRACE(::testing::Message() << name << " " << algorithm);
      ExpectTheHosts(testing::GalleryNamed(name).make(33), 33, DType::kFloat64, algorithm);
    }
  }
}

TEST_F(GpuPublishedIcmTest, MatchesTheHostForComplexMatricesAndStarts) {
  constexpr int64_t kN = 129;
  const HostMatrix a = Dense(kN);
  FactorizeOptions options = Options(Gpu(), DType::kFloat64, "icmpp");
  options.parameters.section_size = 40;
  auto start = gpu_->jobs().Factor(a, kN, DType::kFloat64, Layout::kColumnMajor, options);
  ASSERT_TRUE(start.ok()) << start.status();
  options.parameters.pivoting =
      PivotCriterion{.rule = PivotRule::kInterval, .low = 0, .high = 1e30};
  options.parameters.start = FactorView{{start->lu().data(), DType::kFloat64, kN, kN, kN},
                                        start->ipiv().as<int64_t>(),
                                        UnitDiagonal::kU};
  auto warm = gpu_->jobs().Factor(a, kN, DType::kFloat64, Layout::kColumnMajor, options);
  ASSERT_TRUE(warm.ok()) << warm.status();
  EXPECT_TRUE(warm->summary.iterations->warm);
  EXPECT_EQ(warm->summary.iterations->total_sweeps, 16);  // one per section
  EXPECT_EQ(gpu_->jobs().Download(*warm)->ipiv, gpu_->jobs().Download(*start)->ipiv);
}

}  // namespace
}  // namespace crout::published_icm_test
