// SPDX-License-Identifier: Apache-2.0

// Tests jobs on an out-of-core device, whose GPU holds a small part of the matrix.
#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/host/device/out_of_core_device.h"
#include "tests/gpu/harness/gpu_testing.h"
#include "tests/support/ratios.h"
#include "tests/support/status_matchers.h"

namespace crout::out_of_core_device_test {
namespace {

using ::crout::testing::HostMatrix;
using ::crout::testing::Multiply;
using ::crout::testing::RandomMatrix;

constexpr int64_t kN = 3000;
constexpr size_t kGpuBytes = size_t{64} << 20;  // the float64 matrix has 69 MiB

class OutOfCoreDeviceTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    auto gpu = cuda::MakeDevice(0, cuda::Options());
    ASSERT_OK(gpu);
    auto device =
        host::MakeOutOfCoreDevice(*std::move(gpu), kGpuBytes, host::MakeExecutor(/*threads=*/0));
    ASSERT_OK(device);
    device_ = *std::move(device);
    bench_ = std::make_unique<Bench>(*device_);
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Bench> bench_;
  const HostMatrix a_ = RandomMatrix(kN, kN, 1);
};

TEST_F(OutOfCoreDeviceTest, FactorsSolvesAndDownloads) {
  EXPECT_EQ(device_->info().name, "cuda:0+host");
  const auto factor = bench_->jobs().Factor(a_, kN, {.algorithm = "crout_lu", .parameters = {}});
  ASSERT_OK(factor);
  EXPECT_EQ(factor->summary.info, 0);
  for (const Op op : {Op::kNone, Op::kTranspose}) {
    constexpr int64_t kColumns = 3;
    const HostMatrix b = Multiply(a_, kN, op, RandomMatrix(kN, kColumns, 2), kColumns);
    const auto solution = bench_->jobs().Solve(*factor, b, kColumns, {.op = op});
    ASSERT_OK(solution);
    EXPECT_LT(testing::BackwardError(a_, kN, op, solution->x, b, kColumns), 1e-14);
  }
  const auto here = bench_->jobs().Download(*factor);
  ASSERT_OK(here);
  Bench host(Host());
  const auto reference = host.jobs().Factor(a_, kN, {.parameters = {}});
  ASSERT_OK(reference);
  const auto there = host.jobs().Download(*reference);
  ASSERT_OK(there);
  EXPECT_EQ(here->ipiv, there->ipiv);
}

TEST_F(OutOfCoreDeviceTest, ReportsColumnsToTheJob) {
  std::vector<int64_t> columns;
  ASSERT_OK(bench_->jobs().Factor(a_, kN, {.algorithm = "crout_lu", .parameters = {}}, [&] {
    columns.push_back(bench_->jobs().context().report().ColumnsDone());
    return false;
  }));
  EXPECT_TRUE(std::is_sorted(columns.begin(), columns.end()));
  EXPECT_GT(std::set<int64_t>(columns.begin(), columns.end()).size(), 3U);
  EXPECT_EQ(columns.back(), kN);
}

TEST_F(OutOfCoreDeviceTest, StopsAndFactorsAgain) {
  int polls = 0;
  const auto stopped = bench_->jobs().Factor(a_, kN, {.algorithm = "crout_lu", .parameters = {}},
                                             [&polls] { return ++polls > 4; });
  EXPECT_EQ(stopped.status().code(), absl::StatusCode::kCancelled);
  EXPECT_OK(bench_->jobs().Factor(a_, kN, {.algorithm = "crout_lu", .parameters = {}}));
}

TEST_F(OutOfCoreDeviceTest, RefusesAMatrixWithoutAFittingBlockColumn) {
  const LuAlgorithm& algorithm = *device_->algorithms().front();
  EXPECT_OK(algorithm.WorkspaceBytes(DType::kFloat64, kN, {}));
  EXPECT_EQ(algorithm.WorkspaceBytes(DType::kFloat64, 60000, {}).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace crout::out_of_core_device_test
