// SPDX-License-Identifier: Apache-2.0

// Tests orders for which the host's getrf works in panels: the result, info, and stops.
#include <vector>

#include "gtest/gtest.h"
#include "kernels/host/device/host_device.h"
#include "tests/support/matrices/matrices.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::getrf_panels_test {
namespace {

constexpr int64_t kN = 2100;  // five panels, the last one narrow

class GetrfPanelsTest : public ::testing::Test {
 protected:
  static FactorRequest Request() {
    FactorRequest request;
    request.algorithm = "getrf";
    request.factor_dtype = DType::kFloat32;
    return request;
  }

  const std::unique_ptr<Device> device_ = host::MakeDevice({});
  JobRunner runner_{*device_};
  HostMatrix a_ = RandomMatrix(kN, kN, 1);
};

TEST_F(GetrfPanelsTest, FactorsAccuratelyInPanels) {
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a_, kN, Request()));
  EXPECT_EQ(factor.summary.info, 0);
  EXPECT_LT(factor.summary.pivot_growth, 1000);
  ASSERT_OK_AND_ASSIGN(const Solution solution,
                       runner_.Solve(factor, RandomMatrix(kN, 1, 2), 1, {}));
  EXPECT_LT(*solution.summary.backward_error, 1e-5);
}

TEST_F(GetrfPanelsTest, ReportsFirstZeroPivot) {
  for (const int64_t zero : {int64_t{1400}, int64_t{1700}}) {
    for (int64_t i = 0; i < kN; ++i) a_[i + zero * kN] = 0;
  }
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a_, kN, Request()));
  EXPECT_EQ(factor.summary.info, 1401);
}

TEST_F(GetrfPanelsTest, StopsBetweenPanelsAndReportsProgress) {
  DeviceReport& report = runner_.context().report();
  std::vector<int64_t> reported;
  const auto stop = [&] {
    reported.push_back(report.ColumnsDone());
    return reported.back() >= 1024;
  };
  EXPECT_THAT(runner_.Factor(a_, kN, Request(), stop),
              FailsWith(absl::StatusCode::kCancelled, "stopped"));
  EXPECT_EQ(reported.back(), 1024);
  EXPECT_EQ(report.ColumnsDone(), 1024) << "and went no further";
}

}  // namespace
}  // namespace crout::testing::getrf_panels_test
