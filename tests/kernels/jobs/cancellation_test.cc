// SPDX-License-Identifier: Apache-2.0

// Tests that a stopped job ends between phases, frees all memory and writes no output.
#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <string>

#include "kernels/host/device/host_device.h"
#include "kernels/jobs/factorize.h"
#include "kernels/jobs/solve.h"
#include "tests/support/fakes/fake_device.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::cancellation_test {
namespace {

constexpr int64_t kN = 40;

class CancellationTest : public ::testing::Test {
 protected:
  FakeDevice device_;
  JobRunner runner_{device_};
  const HostMatrix a_ = RandomMatrix(kN, kN, 1);
  const HostMatrix b_ = RandomMatrix(kN, 2, 2);
};

TEST_F(CancellationTest, FactorizeStopsAtEveryPoll) {
  FactorRequest request;
  request.condition = true;
  int total_polls = 0;
  ASSERT_OK(runner_.Factor(a_, kN, request, [&] { return ++total_polls < 0; }));
  EXPECT_GE(total_polls, 5);
  EXPECT_EQ(device_.counting_memory().live_bytes(), 0u);
  for (int last = 1; last <= total_polls; ++last) {
    int polls = 0;
    EXPECT_THAT(runner_.Factor(a_, kN, request, [&] { return ++polls == last; }),
                FailsWith(absl::StatusCode::kCancelled, "stopped"));
    EXPECT_EQ(polls, last);
    EXPECT_EQ(device_.counting_memory().live_bytes(), 0u);
  }
}

TEST_F(CancellationTest, SolveStopsAtEveryPollAndWritesNothing) {
  FactorRequest request;
  request.factor_dtype = DType::kFloat32;
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a_, kN, request));
  const size_t kept = device_.counting_memory().live_bytes();
  SolveRequest solve;
  solve.error_bound = true;
  solve.max_refinement_steps = 2;
  ASSERT_OK_AND_ASSIGN(const SolveOptions options, runner_.Options(solve, factor.summary, 2));
  const PackedMatrix shape{nullptr, DType::kFloat64, Layout::kColumnMajor, kN, 2};
  KernelTimings timings;
  for (int last = 1;; ++last) {
    ASSERT_OK_AND_ASSIGN(Buffer upload, runner_.Upload(Packed(b_, kN, 2, DType::kFloat64)));
    std::vector<std::byte> out(shape.bytes(), std::byte{0x5a});
    int polls = 0;
    const auto result = Solve(
        runner_.context(), factor, std::move(upload), shape, options, out.data(),
        [&] { return ++polls == last; }, timings);
    EXPECT_EQ(device_.counting_memory().live_bytes(), kept);
    if (result.ok()) {
      EXPECT_GT(last, 5);  // polls before and after refinement, in the estimator, before delivery
      break;
    }
    EXPECT_THAT(result, FailsWith(absl::StatusCode::kCancelled, "stopped"));
    EXPECT_TRUE(
        std::all_of(out.begin(), out.end(), [](std::byte v) { return v == std::byte{0x5a}; }));
  }
}

// Several threads poll the stop function concurrently, and it may throw std::bad_alloc.
TEST_F(CancellationTest, EndsOnlyTheJobIfAPollRunsOutOfMemory) {
  constexpr int64_t kWide = 1024;
  const HostMatrix a = GalleryNamed("diagonally_dominant").make(kWide);
  const std::unique_ptr<Device> host = host::MakeDevice({.threads = 2});
  JobRunner runner(*host);
  struct Case {
    const char* algorithm;
    int last;  // 1-based index of the first poll that throws
  };
  for (const auto& [algorithm, last] :
       {Case{"icm", 2}, Case{"icm", 100}, Case{"block_lu", 2}, Case{"block_lu", 4}}) {
    SCOPED_TRACE(std::string(algorithm) + " " + std::to_string(last));
    FactorRequest request;
    request.algorithm = algorithm;
    std::atomic<int> polls = 0;
    const auto ask = [&polls, last = last] {
      if (++polls >= last) throw std::bad_alloc();
      return false;
    };
    EXPECT_THROW((void)runner.Factor(a, kWide, request, ask), std::bad_alloc);
  }
}

TEST_F(CancellationTest, ReturnsUnavailableForBrokenDevice) {
  ASSERT_OK_AND_ASSIGN(Buffer upload, runner_.Upload(Packed(a_, kN, kN, DType::kFloat64)));
  ASSERT_OK_AND_ASSIGN(const FactorizeOptions options, runner_.Options(FactorRequest{}, kN));
  device_.BreakDown();
  KernelTimings timings;
  EXPECT_THAT(Factorize(runner_.context(), std::move(upload),
                        {nullptr, DType::kFloat64, Layout::kColumnMajor, kN, kN}, options,
                        JobRunner::NeverStop(), timings),
              FailsWith(absl::StatusCode::kUnavailable, "broke down"));
  EXPECT_EQ(device_.counting_memory().live_bytes(), 0u);
  EXPECT_FALSE(device_.CreateContext().ok());
}

}  // namespace
}  // namespace crout::testing::cancellation_test
