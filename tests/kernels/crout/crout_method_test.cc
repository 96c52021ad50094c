// SPDX-License-Identifier: Apache-2.0

// Tests Crout's direct method: the pivoting rules of cmpp, and cm without pivoting.
#include "kernels/host/device/host_device.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::crout_method_test {
namespace {

class CroutMethodTest : public ::testing::Test {
 protected:
  HostFactor Factor(const HostMatrix& a, int64_t n, const FactorRequest& request) {
    const auto factor = runner_.Factor(a, n, request);
    EXPECT_OK(factor);
    info_ = factor->summary.info;
    return *runner_.Download(*factor);
  }

  static FactorRequest Cmpp(PivotRule rule) {
    FactorRequest request;
    request.algorithm = "cmpp";
    request.parameters.pivoting = PivotCriterion{.rule = rule};
    return request;
  }

  const std::unique_ptr<Device> device_ = host::MakeDevice({});
  JobRunner runner_{*device_};
  int64_t info_ = 0;
};

TEST_F(CroutMethodTest, MatchesHandComputedFactorsForEveryPivotRule) {
  const HostMatrix a = {1, 2, 4, 6};  // [1 4; 2 6]
  // Partial pivoting selects the largest element of the column: [2 6; 1 4] = [2 0; 1 1] [1 3; 0 1].
  HostFactor factor = Factor(a, 2, Cmpp(PivotRule::kPartial));
  EXPECT_EQ(factor.lu, (HostMatrix{2, 1, 3, 1}));
  EXPECT_EQ(factor.ipiv, (std::vector<int64_t>{2, 2}));
  // 1 is within (1e-5, 1e5] and at least 0.1 * 2, so both rules accept it as pivot:
  // [1 4; 2 6] = [1 0; 2 -2] [1 4; 0 1].
  for (const PivotRule rule : {PivotRule::kInterval, PivotRule::kThreshold}) {
    factor = Factor(a, 2, Cmpp(rule));
    EXPECT_EQ(factor.lu, (HostMatrix{1, 2, 4, -2}));
    EXPECT_EQ(factor.ipiv, (std::vector<int64_t>{1, 2}));
  }
  // With narrower bounds 1 is too small, and the rows are exchanged.
  FactorRequest request = Cmpp(PivotRule::kInterval);
  request.parameters.pivoting->low = 1;
  EXPECT_EQ(Factor(a, 2, request).ipiv[0], 2);
  request = Cmpp(PivotRule::kThreshold);
  request.parameters.pivoting->threshold = 0.6;
  EXPECT_EQ(Factor(a, 2, request).ipiv[0], 2);
}

TEST_F(CroutMethodTest, FactorsAcrossBlocksWithEveryPivotRule) {
  for (const int64_t n : {31, 32, 33, 65, 129, 255, 256, 257, 300}) {
    SCOPED_TRACE(n);
    HostMatrix a = RandomMatrix(n, n, 4);
    for (int64_t i = 0; i + 1 < n; i += 2) a[i + i * n] = 0;
    for (const PivotRule rule :
         {PivotRule::kPartial, PivotRule::kInterval, PivotRule::kThreshold}) {
      const HostFactor factor = Factor(a, n, Cmpp(rule));
      // The interval rule, whose bounds are absolute, permits growth.
      const double threshold = rule == PivotRule::kInterval ? 1e5 : kThreshold;
      EXPECT_LT(FactorRatio(a, n, factor.lu, factor.ipiv, UnitDiagonal::kU, DType::kFloat64),
                threshold);
    }
  }
}

TEST_F(CroutMethodTest, MatchesHandComputedFactorWithoutPivoting) {
  FactorRequest request;
  request.algorithm = "cm";
  const HostFactor factor = Factor({2, 4, 1, 5}, 2, request);
  EXPECT_EQ(factor.lu, (HostMatrix{2, 4, 0.5, 3}));
  EXPECT_EQ(info_, 0);
}

TEST_F(CroutMethodTest, StopsAtZeroPivotWithoutPivoting) {
  FactorRequest request;
  request.algorithm = "cm";
  for (const int64_t k : {0, 1, 31, 32, 255, 256, 270}) {
    HostMatrix a = GalleryNamed("lower_triangular").make(271);
    a[k + k * 271] = 0;
    Factor(a, 271, request);
    EXPECT_EQ(info_, k + 1);
  }
  // cmpp avoids the zero pivot.
  EXPECT_EQ(Factor({0, 1, 1, 0}, 2, Cmpp(PivotRule::kInterval)).ipiv[0], 2);
  EXPECT_EQ(info_, 0);
}

TEST_F(CroutMethodTest, StopsBetweenBlocks) {
  const int64_t n = 600;  // three blocks of cmpp
  const HostMatrix a = RandomMatrix(n, n, 1);
  for (const char* name : {"gem", "cmpp"}) {
    FactorRequest request;
    request.algorithm = name;
    int polls = 0;
    ASSERT_OK(runner_.Factor(a, n, request, [&] { return ++polls < 0; }));
    EXPECT_GE(polls, 3 + 3);  // between phases, and once per block
    polls = 0;
    EXPECT_THAT(runner_.Factor(a, n, request, [&] { return ++polls > 3; }),
                FailsWith(absl::StatusCode::kCancelled, "stopped"));
  }
}

}  // namespace
}  // namespace crout::testing::crout_method_test
