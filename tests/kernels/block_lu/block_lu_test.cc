// SPDX-License-Identifier: Apache-2.0

// Tests blocked LU without pivoting: values, refused input, and results that are bitwise
// independent of the number of threads.
#include <set>

#include "kernels/host/device/host_device.h"
#include "kernels/util/sanitizers.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::block_lu_test {
namespace {

FactorRequest Request() {
  FactorRequest request;
  request.algorithm = "block_lu";
  return request;
}

HostFactor FactorOn(int threads, const HostMatrix& a, int64_t n) {
  const std::unique_ptr<Device> device = host::MakeDevice({.threads = threads});
  JobRunner runner(*device);
  const auto factor = runner.Factor(a, n, Request());
  EXPECT_OK(factor);
  return *runner.Download(*factor);
}

TEST(BlockLuTest, MatchesHandComputedFactor) {
  // [2 1; 4 5] = [1 0; 2 1] [2 1; 0 3], column-major.
  const HostFactor factor = FactorOn(1, {2, 4, 1, 5}, 2);
  EXPECT_EQ(factor.lu, (HostMatrix{2, 2, 1, 3}));
  EXPECT_EQ(factor.ipiv, (std::vector<int64_t>{1, 2}));
}

TEST(BlockLuTest, FactorsOrdersAroundTileAndLeafSizes) {
  for (const int64_t n : {15, 16, 17, 63, 64, 65, 255, 256, 257, 321, 558}) {
    SCOPED_TRACE(n);
    const HostMatrix a = GalleryNamed("diagonally_dominant").make(n);
    const HostFactor factor = FactorOn(1, a, n);
    EXPECT_LT(FactorRatio(a, n, factor.lu, factor.ipiv, UnitDiagonal::kL, DType::kFloat64),
              kThreshold);
  }
}

TEST(BlockLuTest, SupportsEveryBlockSizeAndPriority) {
  const int64_t n = 300;
  const HostMatrix a = GalleryNamed("diagonally_dominant").make(n);
  const std::unique_ptr<Device> device = host::MakeDevice({.threads = 2});
  JobRunner runner(*device);
  std::set<HostMatrix> seen;
  for (const int block : {32, 64, 128, 256, 512}) {
    SCOPED_TRACE(block);
    FactorRequest request = Request();
    request.parameters.block_size = block;
    ASSERT_OK_AND_ASSIGN(const Factorization ours, runner.Factor(a, n, request));
    request.parameters.variant = MethodVariant::kPublished;
    ASSERT_OK_AND_ASSIGN(const Factorization published, runner.Factor(a, n, request));
    ASSERT_OK_AND_ASSIGN(const HostFactor factor, runner.Download(ours));
    EXPECT_LT(FactorRatio(a, n, factor.lu, factor.ipiv, UnitDiagonal::kL, DType::kFloat64),
              kThreshold);
    EXPECT_EQ(runner.Download(published)->lu, factor.lu);
    seen.insert(factor.lu);
  }
  EXPECT_GT(seen.size(), 1u);  // the block size has an effect
  for (const int wrong : {16, 48, 2048}) {
    FactorRequest request = Request();
    request.parameters.block_size = wrong;
    EXPECT_THAT(runner.Factor(a, n, request),
                FailsWith(absl::StatusCode::kInvalidArgument, "block size"));
  }
}

TEST(BlockLuTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  if (kSanitized) GTEST_SKIP() << "order 1100 is for optimised builds";
  const int64_t n = 1100;  // uses all cores
  const HostMatrix a = GalleryNamed("diagonally_dominant").make(n);
  const HostFactor alone = FactorOn(1, a, n);
  for (const int threads : {2, 3, 4}) EXPECT_EQ(FactorOn(threads, a, n).lu, alone.lu);
  EXPECT_LT(FactorRatio(a, n, alone.lu, alone.ipiv, UnitDiagonal::kL, DType::kFloat64), kThreshold);
}

TEST(BlockLuTest, RefusesAPivotThatUnderflows) {
  for (const double pivot : {0.0, 0x1p-1030}) {
    for (const int64_t k : {0, 3, 63, 64, 200, 256, 299}) {
      const int64_t n = 300;
      HostMatrix a = GalleryNamed("lower_triangular").make(n);
      a[k + k * n] = pivot;
      const std::unique_ptr<Device> device = host::MakeDevice({});
      JobRunner runner(*device);
      ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.Factor(a, n, Request()));
      EXPECT_EQ(factor.summary.info, k + 1);
      EXPECT_THAT(runner.Solve(factor, HostMatrix(n, 1.0), 1, {}),
                  FailsWith(absl::StatusCode::kFailedPrecondition, std::to_string(k + 1)));
    }
  }
}

TEST(BlockLuTest, ReportsZeroPivotReproducibly) {
  const int64_t n = kSanitized ? 600 : 1100;
  HostMatrix a = GalleryNamed("diagonally_dominant").make(n);
  for (int64_t j = 0; j < n; ++j) a[520 + j * n] = a[3 + j * n];  // two equal rows
  const auto run = [&] {
    const std::unique_ptr<Device> device = host::MakeDevice({.threads = 4});
    JobRunner runner(*device);
    auto factor = runner.Factor(a, n, Request());
    EXPECT_OK(factor);
    return std::make_pair(factor->summary.info, runner.Download(*factor)->lu);
  };
  const auto first = run();
  for (int round = 0; round < 3; ++round) EXPECT_EQ(run(), first);
}

TEST(BlockLuTest, StopsBetweenTiles) {
  const int64_t n = 600;
  const HostMatrix a = GalleryNamed("diagonally_dominant").make(n);
  const std::unique_ptr<Device> device = host::MakeDevice({});
  JobRunner runner(*device);
  int polls = 0;
  ASSERT_OK(runner.Factor(a, n, Request(), [&] { return ++polls < 0; }));
  EXPECT_GE(polls, 3 + 3);  // between phases, and once per tile
  polls = 0;
  EXPECT_THAT(runner.Factor(a, n, Request(), [&] { return ++polls > 3; }),
              FailsWith(absl::StatusCode::kCancelled, "stopped"));
}

}  // namespace
}  // namespace crout::testing::block_lu_test
