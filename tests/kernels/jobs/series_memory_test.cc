// SPDX-License-Identifier: Apache-2.0

// Tests that series steps stay within the memory of their plans, and plans within the available
// memory.
#include <limits>
#include <optional>

#include "tests/kernels/jobs/series_step_testing.h"
#include "tests/support/fakes/fake_device.h"
#include "tests/support/ratios.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::series_steps::series_memory_test {
namespace {

class SeriesMemoryTest : public ::testing::Test {
 protected:
  FakeDevice device_{{.has_sparse_ops = true}};
  CountingResource& memory_ = device_.counting_memory();
};

TEST_F(SeriesMemoryTest, StepsStayWithinTheirPlans) {
  for (const Layout layout : {Layout::kColumnMajor, Layout::kRowMajor}) {
    for (const bool sparse : {false, true}) {
      for (const bool single : {false, true}) {
        if (sparse && layout == Layout::kRowMajor) continue;
        Series<double> series(device_);
        StepRequest request;
        request.layout = request.x0_layout = layout;
        request.sparse = sparse;
        if (single) request.factor_dtype = request.rhs_dtype = DType::kFloat32;
        HostMatrix a = RandomSparse(kN, 0.1, 3);
        const HostMatrix b = Rounded(RandomMatrix(kN, kNrhs, 5), request.rhs_dtype);
        for (int step = 0; step < 6; ++step) {
          const bool kept = step % 3 == 2;
          request.max_iterations = step == 3 ? 0 : 50;
          const size_t before = series.kept_bytes();
          ASSERT_EQ(memory_.live_bytes(), before);
          memory_.ResetPeak();
          const bool starts = step == 1 || step >= 4;
          ASSERT_OK(series.StepFrom(starts ? std::optional(b) : std::nullopt,
                                    kept ? std::nullopt : std::optional(a), b, request));
          EXPECT_LE(memory_.peak_bytes() - before, series.bytes().peak);
          EXPECT_GE(4 * (memory_.peak_bytes() - before), series.bytes().peak);
          a[0] += 1e-6;
        }
      }
    }
  }
  EXPECT_EQ(memory_.live_bytes(), 0u);
}

TEST_F(SeriesMemoryTest, UpdatesStayWithinTheirPlans) {
  Series<double> series(device_);
  StepRequest request;
  request.update = true;
  const HostMatrix b = RandomMatrix(kN, 1, 5);
  ASSERT_OK(series.Step(RandomMatrix(kN, kN, 3), b, request));
  for (int step = 0; step < 6; ++step) {
    // The rank of the first update exceeds the number of right-hand sides. Later updates extend it.
    const int64_t rank = step == 0 ? 5 : 1;
    const size_t before = series.kept_bytes();
    ASSERT_EQ(memory_.live_bytes(), before);
    memory_.ResetPeak();
    ASSERT_OK_AND_ASSIGN(
        const SeriesStepSummary summary,
        series.ChangedStep({MatrixChange::Kind::kLowRank, rank},
                           PackTogether(RandomMatrix(kN, rank, 7), RandomMatrix(rank, kN, 8)), b,
                           request));
    EXPECT_EQ(summary.update_rank, 5 + step);
    EXPECT_LE(memory_.peak_bytes() - before, series.bytes().peak);
    EXPECT_GE(4 * (memory_.peak_bytes() - before), series.bytes().peak);
  }
  int failures = 0;
  for (;; ++failures) {
    const size_t before = series.kept_bytes();
    memory_.FailAllocations(1, failures);
    const auto summary = series.ChangedStep(
        {MatrixChange::Kind::kLowRank, 1},
        PackTogether(RandomMatrix(kN, 1, 7), RandomMatrix(1, kN, 8)), b, request);
    if (summary.ok()) break;
    EXPECT_EQ(summary.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(memory_.live_bytes(), before);
  }
  memory_.FailAllocations(0);
  EXPECT_GE(failures, 8);
}

TEST_F(SeriesMemoryTest, ReportsFailedAllocationsAndFreesAllMemory) {
  Series<double> series(device_);
  const StepRequest request;
  const HostMatrix a = RandomMatrix(kN, kN, 3);
  const HostMatrix b = RandomMatrix(kN, 1, 5);
  int failures = 0;
  for (;; ++failures) {
    memory_.FailAllocations(1, failures);
    const auto summary = series.Step(a, b, request);
    if (summary.ok()) break;
    EXPECT_EQ(summary.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(memory_.live_bytes(), 0u);
  }
  memory_.FailAllocations(0);
  EXPECT_GE(failures, 8);
}

TEST(SeriesPlanTest, RefusesInvalidOptions) {
  FakeDevice device;
  Series<double> series(device);
  StepRequest request;
  ASSERT_OK(series.Step(RandomMatrix(kN, kN, 3), RandomMatrix(kN, 1, 5), request));
  request.accuracy = -1;
  EXPECT_THAT(series.Step(std::nullopt, RandomMatrix(kN, 1, 5), request),
              FailsWith(absl::StatusCode::kInvalidArgument, "accuracy"));
  request.accuracy = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(series.Step(std::nullopt, RandomMatrix(kN, 1, 5), request),
              FailsWith(absl::StatusCode::kInvalidArgument, "accuracy"));
  request.accuracy = 0;
  EXPECT_THAT(series.Step(std::nullopt, {}, request),
              FailsWith(absl::StatusCode::kInvalidArgument, "right-hand side"));
  Series<double> none(device);
  EXPECT_THAT(none.Step(std::nullopt, RandomMatrix(kN, 1, 5), request),
              FailsWith(absl::StatusCode::kInvalidArgument, "no factor"));
}

}  // namespace
}  // namespace crout::testing::series_steps::series_memory_test
