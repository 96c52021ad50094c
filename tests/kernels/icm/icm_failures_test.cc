// SPDX-License-Identifier: Apache-2.0

// Tests the errors and results of the iterative Crout method if it finds no accurate factor.
#include <algorithm>
#include <string>
#include <vector>

#include "kernels/host/device/host_device.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::icm_failures_test {
namespace {

class IcmFailuresTest : public ::testing::Test {
 protected:
  static FactorRequest Request(const char* algorithm, int64_t section_size) {
    FactorRequest request;
    request.algorithm = algorithm;
    request.parameters.section_size = section_size;
    return request;
  }

  const std::unique_ptr<Device> device_ = host::MakeDevice({});
  JobRunner runner_{*device_};
};

TEST_F(IcmFailuresTest, ReportsSingularMatrices) {
  for (const char* name : {"zero", "zero_first_column", "zero_half_columns", "zero_last_column"}) {
    const GalleryKind& kind = GalleryNamed(name);
    for (const char* algorithm : {"icm", "icmpp"}) {
      for (const int64_t n : {1, 2, 10, 33}) {
        SCOPED_TRACE(std::string(algorithm) + " " + name + " " + std::to_string(n));
        for (const int64_t size : {0, 4}) {
          ASSERT_OK_AND_ASSIGN(const Factorization factor,
                               runner_.Factor(kind.make(n), n, Request(algorithm, size)));
          EXPECT_EQ(factor.summary.info, kind.singular_at(n));
          EXPECT_THAT(runner_.Solve(factor, HostMatrix(n, 1.0), 1, {}),
                      FailsWith(absl::StatusCode::kFailedPrecondition, "pivot"));
        }
      }
    }
  }
}

TEST_F(IcmFailuresTest, StopsAtZeroDiagonalWithoutPivoting) {
  for (const int64_t k : {0, 1, 9, 10, 24}) {
    HostMatrix a = GalleryNamed("lower_triangular").make(25);
    a[k + k * 25] = 0;
    ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a, 25, Request("icm", 10)));
    EXPECT_EQ(factor.summary.info, k + 1);
  }
}

TEST_F(IcmFailuresTest, ReportsPositionOfNonFiniteFinalElement) {
  // The last column grows as 1.5 * 2^i in float32. With the factor 1.5 no value is close to the
  // largest number, so that the order of summation does not decide whether a sum overflows.
  constexpr int64_t kOrder = 200;
  HostMatrix a = GalleryNamed("gfpp").make(kOrder);
  for (int64_t i = 0; i < kOrder; ++i) a[i + (kOrder - 1) * kOrder] *= 1.5;
  for (const int64_t size : {0, 30}) {
    FactorRequest request = Request("icmpp", size);
    request.factor_dtype = DType::kFloat32;
    EXPECT_THAT(runner_.Factor(a, kOrder, request),
                FailsWith(absl::StatusCode::kInvalidArgument, "element (128, 199), 0-based"));
  }
}

TEST_F(IcmFailuresTest, AbortsAtSweepLimit) {
  const HostMatrix a = RandomMatrix(100, 100, 1);
  FactorRequest request = Request("icmpp", 30);
  request.parameters.sweep_limit = 3;
  EXPECT_THAT(runner_.Factor(a, 100, request),
              FailsWith(absl::StatusCode::kAborted,
                        "section (0, 0) of 4 x 4 did not converge within 3 sweeps"));
  // A limit equal to the largest sweep count of a section is sufficient.
  request.parameters.sweep_limit = 0;
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a, 100, request));
  ASSERT_TRUE(factor.summary.iterations.has_value());
  const std::vector<int64_t> sweeps = factor.summary.iterations.value_or(IterationReport{}).sweeps;
  request.parameters.sweep_limit = *std::max_element(sweeps.begin(), sweeps.end());
  EXPECT_OK(runner_.Factor(a, 100, request));
  --request.parameters.sweep_limit;
  EXPECT_THAT(runner_.Factor(a, 100, request),
              FailsWith(absl::StatusCode::kAborted, "did not converge"));
}

TEST_F(IcmFailuresTest, ReportsInaccuracyOfLooseTolerance) {
  const int64_t n = 129;
  const HostMatrix a = GalleryNamed("diagonally_dominant").make(n);
  FactorRequest request = Request("icmpp", 40);
  request.parameters.tolerance = 0.5;
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a, n, request));
  ASSERT_OK_AND_ASSIGN(const HostFactor parts, runner_.Download(factor));
  EXPECT_GT(FactorRatio(a, n, parts.lu, parts.ipiv, UnitDiagonal::kU, DType::kFloat64), kThreshold);
  const HostMatrix b = RandomMatrix(n, 1, 1);
  ASSERT_OK_AND_ASSIGN(const Solution poor, runner_.Solve(factor, b, 1, {}));
  EXPECT_GT(*poor.summary.backward_error, 1e-10);
  // Refinement corrects the inaccurate factor.
  SolveRequest refined;
  refined.max_refinement_steps = 50;
  ASSERT_OK_AND_ASSIGN(const Solution good, runner_.Solve(factor, b, 1, refined));
  EXPECT_LT(*good.summary.backward_error, 1e-14);
  EXPECT_GT(good.summary.refinement_steps, 0);
}

TEST_F(IcmFailuresTest, StopsBetweenSweeps) {
  const HostMatrix a = RandomMatrix(100, 100, 1);
  const FactorRequest request = Request("icmpp", 30);
  int polls = 0;
  ASSERT_OK(runner_.Factor(a, 100, request, [&] { return ++polls < 0; }));
  const int total_polls = polls;
  EXPECT_GT(total_polls, 400);  // 16 sections, most with 60 sweeps
  for (const int last : {1, 3, 50, 200, total_polls - 10}) {
    polls = 0;
    EXPECT_THAT(runner_.Factor(a, 100, request, [&] { return ++polls > last; }),
                FailsWith(absl::StatusCode::kCancelled, "stopped"));
    EXPECT_LE(polls, last + 12);  // each active section polls once more
  }
}

TEST_F(IcmFailuresTest, RefusesStartOfAnotherOrderOrType) {
  const HostMatrix a = RandomMatrix(10, 10, 1);
  ASSERT_OK_AND_ASSIGN(const Factorization start, runner_.Factor(a, 10, FactorRequest{}));
  FactorRequest request = Request("icmpp", 0);
  request.parameters.start = FactorView{{start.lu().data(), DType::kFloat64, 10, 10, 10},
                                        start.ipiv().as<int64_t>(),
                                        UnitDiagonal::kL};
  EXPECT_THAT(runner_.Factor(RandomMatrix(9, 9, 1), 9, request),
              FailsWith(absl::StatusCode::kInvalidArgument, "order 10"));
  request.factor_dtype = DType::kFloat32;
  EXPECT_THAT(runner_.Factor(a, 10, request),
              FailsWith(absl::StatusCode::kInvalidArgument, "type f64"));
}

}  // namespace
}  // namespace crout::testing::icm_failures_test
