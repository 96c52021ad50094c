// SPDX-License-Identifier: Apache-2.0

// Tests the device for matrices in host memory on a fake GPU, which holds one block column.
#include "kernels/host/device/out_of_core_device.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/host/device/host_device.h"
#include "kernels/util/size_class.h"
#include "tests/support/fakes/fake_device.h"
#include "tests/support/matrices/gallery.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::out_of_core_device_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kN = 60;
constexpr size_t kColumnBytes = kN * sizeof(double);
constexpr size_t kGpuBytes = 7 * kColumnBytes;  // nine block columns

class OutOfCoreDeviceTest : public ::testing::Test {
 protected:
  void Start(const FakeDeviceOptions& options = {}) {
    gpu_ = std::make_shared<FakeDevice>(options);
    auto device = host::MakeOutOfCoreDevice(gpu_, kGpuBytes, host::MakeExecutor(1));
    ASSERT_OK(device);
    device_ = *std::move(device);
    jobs_ = std::make_unique<JobRunner>(*device_);
  }
  absl::StatusOr<Factorization> Factor(const HostMatrix& a,
                                       StopRequested stop = JobRunner::NeverStop()) {
    return jobs_->Factor(a, kN, {.algorithm = "crout_lu", .parameters = {}}, stop);
  }
  const LuAlgorithm& algorithm() const { return *device_->algorithms().front(); }

  std::shared_ptr<FakeDevice> gpu_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<JobRunner> jobs_;
  const HostMatrix a_ = RandomMatrix(kN, kN, 1);
};

TEST_F(OutOfCoreDeviceTest, FactorsSolvesAndDownloads) {
  Start();
  EXPECT_EQ(device_->info().name, "cuda:0+host");
  EXPECT_EQ(device_->info().factors_on, "cuda:0");
  const auto factor = Factor(a_);
  ASSERT_OK(factor);
  EXPECT_EQ(factor->summary.info, 0);
  for (const Op op : {Op::kNone, Op::kTranspose}) {
    constexpr int64_t kColumns = 3;
    const HostMatrix b = Multiply(a_, kN, op, RandomMatrix(kN, kColumns, 2), kColumns);
    const auto solution = jobs_->Solve(*factor, b, kColumns, {.op = op});
    ASSERT_OK(solution);
    EXPECT_LT(BackwardError(a_, kN, op, solution->x, b, kColumns), 1e-14);
  }
  const auto downloaded = jobs_->Download(*factor);
  ASSERT_OK(downloaded);
  const std::unique_ptr<Device> host = host::MakeDevice({.threads = 1});
  JobRunner reference(*host);
  const auto expected = reference.Factor(a_, kN, {.parameters = {}});
  ASSERT_OK(expected);
  const auto lu = reference.Download(*expected);
  ASSERT_OK(lu);
  EXPECT_EQ(downloaded->ipiv, lu->ipiv);
}

TEST_F(OutOfCoreDeviceTest, ReportsTheFirstZeroPivot) {
  Start();
  HostMatrix a = a_;
  for (int64_t j = 0; j < kN; ++j) {
    for (int64_t i = j + 1; i < kN; ++i) a[i + j * kN] = 0;
  }
  a[20 + 20 * kN] = 0;
  const auto factor = Factor(a);
  ASSERT_OK(factor);
  EXPECT_EQ(factor->summary.info, 21);
}

TEST_F(OutOfCoreDeviceTest, FactorsAnEmptyMatrix) {
  Start();
  EXPECT_OK(jobs_->Factor({}, 0, {.algorithm = "crout_lu", .parameters = {}}));
}

TEST_F(OutOfCoreDeviceTest, MatricesAreInStagingMemoryAndBlockColumnsOnTheGpu) {
  Start();
  EXPECT_EQ(gpu_->counting_memory().live_bytes(), BlockBytes(kGpuBytes));
  {
    const auto factor = Factor(a_);
    ASSERT_OK(factor);
    EXPECT_GE(gpu_->counting_staging_memory().live_bytes(), 2 * kN * kColumnBytes);
    EXPECT_GE(device_->memory_stats().pool_used_bytes, 2 * kN * kColumnBytes);
    EXPECT_EQ(gpu_->counting_memory().peak_bytes(), BlockBytes(kGpuBytes));
  }
  EXPECT_EQ(gpu_->counting_staging_memory().live_bytes(), 0U);
  EXPECT_EQ(device_->memory_stats().pool_used_bytes, 0U);
  jobs_.reset();
  device_.reset();
  EXPECT_EQ(gpu_->counting_memory().live_bytes(), 0U);
}

TEST_F(OutOfCoreDeviceTest, ReportsColumnsToTheJobAndStopsBeforeTheNextBlockColumn) {
  Start();
  std::vector<int64_t> columns;
  const auto stopped = Factor(a_, [&] {
    const int64_t done = jobs_->context().report().ColumnsDone();
    if (columns.empty() || columns.back() != done) columns.push_back(done);
    return done >= 14;
  });
  EXPECT_EQ(stopped.status().code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(columns, ::testing::ElementsAre(0, 7, 14));
  EXPECT_OK(Factor(a_)) << "the next factorization";
}

TEST_F(OutOfCoreDeviceTest, RefusesAnOrderThatNeedsMoreMemoryOfTheGpu) {
  Start();
  constexpr int64_t kLargest = 7 * kN;  // one column
  EXPECT_OK(algorithm().WorkspaceBytes(DType::kFloat64, kLargest, {}));
  const auto refused = algorithm().WorkspaceBytes(DType::kFloat64, kLargest + 1, {});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.status().message(),
            "the out-of-core LU of order 421 needs at least 3368 bytes of the memory of cuda:0, "
            "and 3360 bytes are set aside. Raise --out-of-core-memory to 3368 bytes or more, or "
            "send a smaller matrix");
  EXPECT_GT(algorithm().PredictSeconds(DType::kFloat64, kLargest + 1), 1e8);
}

TEST_F(OutOfCoreDeviceTest, AnErrorOfPinnedMemoryStatesWhatIsPinned) {
  Start({.staging_bytes = 3 * kN * kColumnBytes});
  const auto first = device_->memory().Allocate(kN * kColumnBytes);
  ASSERT_OK(first);
  const absl::Status refused = device_->memory().Allocate(4 * kN * kColumnBytes).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("cuda:0+host could not pin 115200 bytes of host memory"),
                    HasSubstr("It has pinned 28800 of the "), HasSubstr("--host-budget")));
}

TEST_F(OutOfCoreDeviceTest, IsLostWithItsGpu) {
  Start({.stalls_at = 14});
  bool lost = false;
  const auto factor = Factor(a_, [&] {
    if (jobs_->context().report().ColumnsDone() >= 14 && !lost) {
      gpu_->BreakDown();
      lost = true;
    }
    return false;
  });
  EXPECT_EQ(factor.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(device_->healthy());
}

TEST_F(OutOfCoreDeviceTest, NeedsTheMemoryOfItsGpu) {
  const auto gpu = std::make_shared<FakeDevice>(FakeDeviceOptions{.memory_bytes = kGpuBytes / 2});
  EXPECT_EQ(host::MakeOutOfCoreDevice(gpu, kGpuBytes, host::MakeExecutor(1)).status().code(),
            absl::StatusCode::kResourceExhausted);
  const std::shared_ptr<Device> host = host::MakeDevice({.threads = 1});
  EXPECT_EQ(host::MakeOutOfCoreDevice(host, kGpuBytes, host::MakeExecutor(1)).status().code(),
            absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace crout::testing::out_of_core_device_test
