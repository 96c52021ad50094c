// SPDX-License-Identifier: Apache-2.0

// Tests Crout's own direct methods on the GPU: crout_lu, pcm, pcmpp and block_lu.
#include <atomic>
#include <cmath>
#include <string>
#include <thread>

#include "kernels/algorithm_registry.h"
#include "kernels/jobs/factorize.h"
#include "kernels/jobs/solve.h"
#include "tests/gpu/harness/jobs.h"
#include "tests/support/ratios.h"

namespace crout::direct_methods_test {
namespace {

using ::crout::testing::Gallery;
using ::crout::testing::GalleryKind;
using ::crout::testing::GalleryNamed;
using ::crout::testing::kThreshold;
using ::crout::testing::Rounded;

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64};
constexpr int kBlockSizes[] = {8, 16, 32};

class DirectMethodsTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped()) gpu_ = std::make_unique<Bench>(Gpu());
  }

  FactorizeOptions Options(std::string_view algorithm, DType dtype, int block_size = 0) {
    FactorizeOptions options = OptionsOf(Gpu(), dtype, algorithm);
    options.equilibrate = EquilibrateMode::kOff;
    options.parameters.block_size = block_size;
    return options;
  }

  absl::StatusOr<Factorization> Factor(const HostMatrix& a, int64_t n,
                                       const FactorizeOptions& options) {
    return gpu_->jobs().Factor(a, n, options.factor_dtype, Layout::kColumnMajor, options);
  }

  // Expects LAPACK's ratio below its threshold, and the first zero pivot as `info`.
  void Check(const GalleryKind& kind, int64_t n, const FactorizeOptions& options);

  std::unique_ptr<Bench> gpu_;
};

void DirectMethodsTest::Check(const GalleryKind& kind, int64_t n, const FactorizeOptions& options) {
  const DType dtype = options.factor_dtype;
  SCOPED_TRACE(::testing::Message()
               << options.algorithm->traits().name << " " << kind.name << " n=" << n << " "
               << NameOf(dtype) << " block " << options.parameters.block_size);
  const HostMatrix a = Rounded(kind.make(n), dtype);
  auto factor = Factor(a, n, options);
  ASSERT_TRUE(factor.ok()) << factor.status();
  const FactorSummary& summary = factor->summary;
  EXPECT_EQ(summary.info, testing::FirstZeroPivot(*gpu_->jobs().Download(*factor), n));
  if (kind.singular_at(n) > 0) {
    EXPECT_EQ(summary.info, kind.singular_at(n));
  }
  // With the unit diagonal in U, a singular matrix need not have a factorization. The growth of
  // Wilkinson's matrix exceeds the range of float32.
  if (summary.info > 0 || !std::isfinite(summary.pivot_growth)) return;
  const double threshold = kind.name == "gfpp" ? kThreshold * summary.pivot_growth : kThreshold;
  EXPECT_LT(FactorRatioOf(*gpu_, *factor, a), threshold);
}

TEST_F(DirectMethodsTest, PassesTheGalleryWithPivoting) {
  for (const char* algorithm : {"pcmpp", "crout_lu"}) {
    for (const GalleryKind& kind : Gallery()) {
      for (const int64_t n : {1, 2, 3, 5, 10, 31, 32, 33, 129, 255, 256, 257}) {
        for (const DType dtype : kTypes) {
          if (testing::FitsType(kind.name, dtype)) Check(kind, n, Options(algorithm, dtype));
        }
      }
    }
  }
}

// Panels fit in one block or in clusters of each size, and large orders use look-ahead.
TEST_F(DirectMethodsTest, CroutLuFactorsPanelsOfEveryHeight) {
  for (const char* name : {"random", "shift", "graded"}) {
    for (const int64_t n : {511, 512, 513, 558, 1023, 1025, 1089}) {
      for (const DType dtype : kTypes) Check(GalleryNamed(name), n, Options("crout_lu", dtype));
    }
  }
  for (const int64_t n : {2048, 2049, 4100, 8200}) {
    SCOPED_TRACE(n);
    const HostMatrix a = testing::RandomMatrix(n, n, 3);
    for (const DType dtype : kTypes) {
      auto factor = Factor(Rounded(a, dtype), n, Options("crout_lu", dtype));
      ASSERT_TRUE(factor.ok()) << factor.status();
      EXPECT_LT(ProbedFactorRatioOf(*gpu_, *factor, Rounded(a, dtype)), kThreshold);
    }
  }
}

// Large orders have several leaves and blocks. Every block size is tested.
TEST_F(DirectMethodsTest, PcmppFactorsInEveryVariant) {
  for (const char* name : {"random", "shift", "graded"}) {
    for (const int64_t n : {7, 8, 9, 31, 33, 257, 558}) {
      for (const int block : kBlockSizes) {
        for (const DType dtype : kTypes)
          Check(GalleryNamed(name), n, Options("pcmpp", dtype, block));
      }
    }
  }
  for (const DType dtype : kTypes) Check(GalleryNamed("random"), 1089, Options("pcmpp", dtype));
}

TEST_F(DirectMethodsTest, FactorsDiagonallyDominantMatricesWithoutPivoting) {
  for (const char* algorithm : {"pcm", "block_lu"}) {
    for (const char* name : {"diagonally_dominant", "upper_triangular", "lower_triangular",
                             "graded", "near_underflow", "near_overflow", "near_overflow_f64"}) {
      for (const int64_t n : {1, 2, 3, 5, 31, 32, 33, 255, 256, 257, 558}) {
        for (const DType dtype : kTypes) {
          const GalleryKind& kind = GalleryNamed(name);
          if (testing::FitsType(kind.name, dtype)) Check(kind, n, Options(algorithm, dtype));
        }
      }
    }
    for (const DType dtype : kTypes) {
      Check(GalleryNamed("diagonally_dominant"), 1089, Options(algorithm, dtype));
    }
  }
  for (const int block : kBlockSizes) {
    Check(GalleryNamed("diagonally_dominant"), 257, Options("pcm", DType::kFloat64, block));
  }
}

TEST_F(DirectMethodsTest, MovesNoRowsWithoutPivoting) {
  constexpr int64_t kN = 100;
  const HostMatrix a = GalleryNamed("diagonally_dominant").make(kN);
  for (const char* algorithm : {"pcm", "block_lu"}) {
    auto factor = Factor(a, kN, Options(algorithm, DType::kFloat64));
    ASSERT_TRUE(factor.ok()) << factor.status();
    const std::vector<int64_t> ipiv = gpu_->jobs().Download(*factor)->ipiv;
    for (int64_t k = 0; k < kN; ++k) EXPECT_EQ(ipiv[k], k + 1);
  }
}

// Compares element by element. The pivots must be equal. Device and host add terms in different
// orders, so other elements may differ by roundoff.
TEST_F(DirectMethodsTest, PcmppMatchesTheHostsCmpp) {
  Bench host(Host());
  for (const int64_t n : {31, 32, 33, 255, 256, 257, 558}) {
    SCOPED_TRACE(n);
    const HostMatrix a = GalleryNamed("random").make(n);
    auto on_gpu = Factor(a, n, Options("pcmpp", DType::kFloat64));
    FactorizeOptions options = OptionsOf(Host(), DType::kFloat64, "cmpp");
    options.equilibrate = EquilibrateMode::kOff;
    auto on_host = host.jobs().Factor(a, n, DType::kFloat64, Layout::kColumnMajor, options);
    ASSERT_TRUE(on_gpu.ok() && on_host.ok()) << on_gpu.status() << on_host.status();
    const HostFactor ours = *gpu_->jobs().Download(*on_gpu);
    const HostFactor theirs = *host.jobs().Download(*on_host);
    EXPECT_EQ(ours.ipiv, theirs.ipiv);
    for (int64_t e = 0; e < n * n; ++e) {
      ASSERT_NEAR(ours.lu[e], theirs.lu[e], 1e-8 * (1 + std::abs(theirs.lu[e]))) << "element " << e;
    }
  }
}

// Returns a matrix with entries in [-1000, 1000]. Each diagonal entry except the last is zero with
// probability 1/2.
HostMatrix ZerosOnDiagonal(int64_t n) {
  HostMatrix a = testing::RandomMatrix(n, n, 7);
  for (double& value : a) value *= 1000;
  for (int64_t i = 0; i + 1 < n; ++i) {
    if (std::fmod(std::abs(a[i + i * n]), 2) < 1) a[i + i * n] = 0;
  }
  return a;
}

TEST_F(DirectMethodsTest, AppliesPivotRules) {
  constexpr int64_t kN = 558;
  const HostMatrix a = ZerosOnDiagonal(kN);
  FactorizeOptions options = Options("pcmpp", DType::kFloat64);
  options.parameters.pivoting = PivotCriterion{PivotRule::kThreshold, 0, 0, 0.1};
  auto threshold = Factor(a, kN, options);
  options.parameters.pivoting = PivotCriterion{PivotRule::kInterval, 1e-5, 1e5, 0};
  auto interval = Factor(a, kN, options);
  ASSERT_TRUE(threshold.ok() && interval.ok()) << threshold.status() << interval.status();
  EXPECT_LT(FactorRatioOf(*gpu_, *threshold, a), kThreshold);
  // The interval does not bound the growth, so the ratio may be as large as the growth.
  EXPECT_LT(FactorRatioOf(*gpu_, *interval, a),
            kThreshold * std::max(1.0, interval->summary.pivot_growth));
  // Good diagonal elements stay in place.
  const auto kept = [](const std::vector<int64_t>& ipiv) {
    int64_t count = 0;
    for (size_t k = 0; k < ipiv.size(); ++k) count += ipiv[k] == static_cast<int64_t>(k) + 1;
    return count;
  };
  EXPECT_GT(kept(gpu_->jobs().Download(*threshold)->ipiv), kN / 2);
  EXPECT_GT(kept(gpu_->jobs().Download(*interval)->ipiv), kN / 4);
  options.parameters.pivoting = PivotCriterion{PivotRule::kNone};
  auto none = Factor(GalleryNamed("diagonally_dominant").make(kN), kN, options);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(kept(gpu_->jobs().Download(*none)->ipiv), kN);
}

TEST_F(DirectMethodsTest, PcmReportsZeroPivot) {
  for (const int64_t at : {0, 1, 31, 32, 99}) {
    SCOPED_TRACE(at);
    constexpr int64_t kN = 100;
    HostMatrix a = GalleryNamed("upper_triangular").make(kN);
    a[at + at * kN] = 0;
    auto factor = Factor(a, kN, Options("pcm", DType::kFloat64));
    ASSERT_TRUE(factor.ok()) << factor.status();
    EXPECT_EQ(factor->summary.info, at + 1);
    EXPECT_TRUE(std::isfinite(factor->summary.pivot_growth));
  }
}

TEST_F(DirectMethodsTest, BlockLuRefusesABadPivot) {
  for (const int64_t at : {0, 1, 31, 32, 99, 299}) {
    for (const double bad : {0.0, 1e-310}) {
      SCOPED_TRACE(::testing::Message() << at << " " << bad);
      constexpr int64_t kN = 300;
      // In an upper triangular matrix, elimination does not change the bad pivot.
      HostMatrix a = GalleryNamed("upper_triangular").make(kN);
      a[at + at * kN] = bad;
      auto factor = Factor(a, kN, Options("block_lu", DType::kFloat64));
      ASSERT_TRUE(factor.ok()) << factor.status();
      EXPECT_EQ(factor->summary.info, at + 1);
      EXPECT_TRUE(std::isfinite(factor->summary.pivot_growth));
      // The factors stored so far are A itself, which is upper triangular.
      EXPECT_EQ(gpu_->jobs().Download(*factor)->lu, a);
    }
  }
}

TEST_F(DirectMethodsTest, BlockLuRefusesMatricesThatNeedPivoting) {
  for (const int64_t n : {33, 257, 1089}) {
    auto factor = Factor(GalleryNamed("shift").make(n), n, Options("block_lu", DType::kFloat32));
    ASSERT_TRUE(factor.ok()) << factor.status();
    EXPECT_EQ(factor->summary.info, 1);
    EXPECT_TRUE(std::isfinite(factor->summary.pivot_growth));
  }
}

TEST_F(DirectMethodsTest, AutoNeverChoosesAMethodWithoutPivoting) {
  for (const int64_t n : {1, 100, 1000, 10000, 100000}) {
    for (const DType dtype : kTypes) {
      auto found = FindAlgorithm(Gpu(), "auto", dtype, n);
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_NE((*found)->traits().pivoting, PivotRule::kNone) << (*found)->traits().name;
    }
  }
}

TEST_F(DirectMethodsTest, GivesTheSameBitsTwice) {
  constexpr int64_t kN = 1089;
  for (const char* algorithm : {"crout_lu", "pcm", "pcmpp", "block_lu"}) {
    for (const DType dtype : kTypes) {
      const HostMatrix a = GalleryNamed("diagonally_dominant").make(kN);
      auto first = Factor(a, kN, Options(algorithm, dtype));
      auto second = Factor(a, kN, Options(algorithm, dtype));
      ASSERT_TRUE(first.ok() && second.ok());
      EXPECT_TRUE(SameBits(gpu_->jobs().Download(*first)->lu, gpu_->jobs().Download(*second)->lu))
          << algorithm;
    }
  }
}

// The panels have more rows than a cluster holds, so they use the cooperative grid.
TEST_F(DirectMethodsTest, FactorsTallPanels) {
  constexpr int64_t kN = 9000;
  const HostMatrix a = testing::RandomMatrix(kN, kN, 3);
  for (const int block : {16, 32}) {
    auto factor = Factor(a, kN, Options("pcmpp", DType::kFloat64, block));
    ASSERT_TRUE(factor.ok()) << factor.status();
    const HostMatrix x_true(kN, 1.0);
    HostMatrix b(kN, 0.0);
    for (int64_t j = 0; j < kN; ++j) {
      for (int64_t i = 0; i < kN; ++i) b[i] += a[i + j * kN];
    }
    SolveOptions options;
    options.solver = SolverOf(Gpu(), "trsm");
    auto solved = gpu_->jobs().Solve(*factor, b, 1, DType::kFloat64, Layout::kColumnMajor, options);
    ASSERT_TRUE(solved.ok()) << solved.status();
    EXPECT_LT(*solved->summary.backward_error, 1e-13);
  }
}

// Runs clusters and cooperative grids on several streams at once. None may wait for blocks that
// cannot be scheduled.
TEST_F(DirectMethodsTest, GivesTheSameBitsConcurrentlyAndAlone) {
  for (const char* algorithm : {"pcmpp", "crout_lu"}) {
    for (const int64_t n : {600, 3000, 8300}) {
      const HostMatrix a = testing::RandomMatrix(n, n, 4);
      const FactorizeOptions options = Options(algorithm, DType::kFloat64);
      auto alone = Factor(a, n, options);
      ASSERT_TRUE(alone.ok()) << alone.status();
      const HostMatrix expected = gpu_->jobs().Download(*alone)->lu;
      std::vector<std::thread> threads;
      std::atomic<int> same = 0;
      for (int t = 0; t < 3; ++t) {
        threads.emplace_back([&] {
          Bench mine(Gpu());
          auto factor = mine.jobs().Factor(a, n, DType::kFloat64, Layout::kColumnMajor, options);
          if (factor.ok()) same += SameBits(mine.jobs().Download(*factor)->lu, expected);
        });
      }
      for (std::thread& thread : threads) thread.join();
      EXPECT_EQ(same, 3) << algorithm << " " << n;
    }
  }
}

// The pipelines handle n = 0 themselves, but the methods must support it too.
TEST_F(DirectMethodsTest, ReturnsZeroInfoForOrderZero) {
  for (const char* algorithm : {"getrf", "crout_lu", "pcm", "pcmpp", "block_lu"}) {
    for (const DType dtype : kTypes) {
      SCOPED_TRACE(algorithm);
      const LuAlgorithm& method = *Options(algorithm, dtype).algorithm;
      const auto bytes = method.WorkspaceBytes(dtype, 0, {});
      ASSERT_TRUE(bytes.ok()) << bytes.status();
      const Buffer workspace = gpu_->Allocate(*bytes);
      gpu_->context().report().info = 7;
      const absl::Status status =
          method.Factor(gpu_->context(), {nullptr, dtype, 0, 0, 1}, nullptr,
                        {workspace.data(), workspace.size()}, {}, [] { return false; });
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_EQ(gpu_->Wait().info, 0);
    }
  }
}

TEST_F(DirectMethodsTest, ReportsProgress) {
  constexpr int64_t kN = 3000;
  const HostMatrix a = GalleryNamed("diagonally_dominant").make(kN);
  for (const char* algorithm : {"crout_lu", "pcm", "pcmpp", "block_lu"}) {
    SCOPED_TRACE(algorithm);
    ExpectColumnsReported(*gpu_, a, kN, Options(algorithm, DType::kFloat64));
  }
}

TEST_F(DirectMethodsTest, StopsBetweenPanels) {
  constexpr int64_t kN = 3000;
  const HostMatrix a = GalleryNamed("diagonally_dominant").make(kN);
  for (const char* algorithm : {"crout_lu", "pcm", "pcmpp", "block_lu"}) {
    SCOPED_TRACE(algorithm);
    const FactorizeOptions options = Options(algorithm, DType::kFloat64);
    for (const int allowed : {4, 20, 40}) {
      int polls = 0;
      Buffer upload = gpu_->Put(a);
      KernelTimings timings;
      auto factor = Factorize(
          gpu_->context(), std::move(upload),
          {nullptr, DType::kFloat64, Layout::kColumnMajor, kN, kN}, options,
          [&] { return ++polls > allowed; }, timings);
      EXPECT_EQ(factor.status().code(), absl::StatusCode::kCancelled) << factor.status();
    }
    Check(GalleryNamed("diagonally_dominant"), 257, options);  // the context is still usable
  }
}

}  // namespace
}  // namespace crout::direct_methods_test
