// SPDX-License-Identifier: Apache-2.0

// Tests that a job, even one that ends early, frees its upload only after the copy to it has ended.
#include "kernels/jobs/factorize.h"
#include "kernels/jobs/solve.h"
#include "tests/support/fakes/fake_device.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::upload_lifetime_test {
namespace {

constexpr int64_t kN = 4;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kCancelled = absl::StatusCode::kCancelled;
constexpr auto kExhausted = absl::StatusCode::kResourceExhausted;

bool Always() { return true; }

PackedMatrix Columns(int64_t rows, int64_t cols) {
  return {nullptr, DType::kFloat64, Layout::kColumnMajor, rows, cols};
}

class UploadLifetimeTest : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(memory_.freed_in_use(), 0); }

  // Fails allocation number `fault` of the job, from 0; none if negative.
  absl::StatusOr<Factorization> Factorize(const HostMatrix& a, PackedMatrix shape,
                                          const FactorizeOptions& options, StopRequested stop,
                                          int fault = -1);
  absl::StatusOr<SolveSummary> Solve(const Factorization& factor, PackedMatrix shape,
                                     const SolveOptions& options, StopRequested stop,
                                     int fault = -1);
  FactorizeOptions FactorOptions() { return *runner_.Options(FactorRequest{}, kN); }
  SolveOptions OptionsFor(const Factorization& factor) {
    return *runner_.Options(SolveRequest{}, factor.summary, 1);
  }

  FakeDevice device_;
  CountingResource& memory_ = device_.counting_memory();
  JobRunner runner_{device_};
  const HostMatrix a_ = RandomMatrix(kN, kN, 1);
  KernelTimings timings_;
  double out_[8] = {};
};

absl::StatusOr<Factorization> UploadLifetimeTest::Factorize(const HostMatrix& a, PackedMatrix shape,
                                                            const FactorizeOptions& options,
                                                            StopRequested stop, int fault) {
  Buffer upload = *runner_.Upload(Packed(a, kN, kN, DType::kFloat64));
  if (fault >= 0) memory_.FailAllocations(1, fault);
  return crout::Factorize(runner_.context(), std::move(upload), shape, options, stop, timings_);
}

absl::StatusOr<SolveSummary> UploadLifetimeTest::Solve(const Factorization& factor,
                                                       PackedMatrix shape,
                                                       const SolveOptions& options,
                                                       StopRequested stop, int fault) {
  Buffer upload = *runner_.Upload(Packed(RandomMatrix(kN, 1, 2), kN, 1, DType::kFloat64));
  if (fault >= 0) memory_.FailAllocations(1, fault);
  return crout::Solve(runner_.context(), factor, std::move(upload), shape, options,
                      reinterpret_cast<std::byte*>(out_), stop, timings_);
}

TEST_F(UploadLifetimeTest, FreesUploadAfterCopyIfMatrixIsRefused) {
  const StopRequested never = JobRunner::NeverStop();
  EXPECT_THAT(Factorize(a_, Columns(kN, kN - 1), FactorOptions(), never),
              FailsWith(kInvalid, "not square"));
  EXPECT_THAT(Factorize(a_, Columns(kN + 1, kN + 1), FactorOptions(), never),
              FailsWith(kInvalid, "its shape"));
  EXPECT_THAT(Factorize(a_, Columns(-1, -1), FactorOptions(), never),
              FailsWith(kInvalid, "is negative or overflows"));
}

TEST_F(UploadLifetimeTest, FreesUploadAfterCopyIfFactorizeStopsAtOnce) {
  EXPECT_THAT(Factorize(a_, Columns(kN, kN), FactorOptions(), Always), FailsWith(kCancelled, ""));
}

TEST_F(UploadLifetimeTest, FreesUploadAfterCopyIfFactorizeRunsOutOfMemory) {
  int faults = 0;
  for (;; ++faults) {
    const auto factor =
        Factorize(a_, Columns(kN, kN), FactorOptions(), JobRunner::NeverStop(), faults);
    if (factor.ok()) break;
    EXPECT_THAT(factor, FailsWith(kExhausted, "bytes"));
  }
  EXPECT_GE(faults, 2);
}

TEST_F(UploadLifetimeTest, FreesUploadAfterCopyIfRightHandSideIsRefused) {
  const StopRequested never = JobRunner::NeverStop();
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a_, kN, {}));
  const SolveOptions options = OptionsFor(factor);
  EXPECT_THAT(Solve(factor, Columns(kN + 1, 1), options, never), FailsWith(kPrecondition, "rows"));
  EXPECT_THAT(Solve(factor, Columns(kN, 2), options, never), FailsWith(kInvalid, "its shape"));
  EXPECT_THAT(Solve(factor, Columns(kN, 1), {}, never), FailsWith(kInvalid, "no solver"));
}

TEST_F(UploadLifetimeTest, FreesUploadAfterCopyIfFactorIsRefused) {
  const StopRequested never = JobRunner::NeverStop();
  FactorRequest request;
  ASSERT_OK_AND_ASSIGN(const Factorization singular,
                       runner_.Factor(HostMatrix(kN * kN), kN, request));
  EXPECT_THAT(Solve(singular, Columns(kN, 1), OptionsFor(singular), never),
              FailsWith(kPrecondition, "singular"));
  request.keep_matrix = false;
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a_, kN, request));
  SolveOptions refine = OptionsFor(factor);
  refine.max_refinement_steps = 1;
  EXPECT_THAT(Solve(factor, Columns(kN, 1), refine, never),
              FailsWith(kPrecondition, "was not kept"));
}

TEST_F(UploadLifetimeTest, FreesUploadAfterCopyIfSolveStopsAtOnce) {
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a_, kN, {}));
  EXPECT_THAT(Solve(factor, Columns(kN, 1), OptionsFor(factor), Always), FailsWith(kCancelled, ""));
}

TEST_F(UploadLifetimeTest, FreesUploadAfterCopyIfSolveRunsOutOfMemory) {
  FactorRequest request;
  request.factor_dtype = DType::kFloat32;  // its solver needs a buffer of its own
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a_, kN, request));
  int faults = 0;
  for (;; ++faults) {
    const auto summary =
        Solve(factor, Columns(kN, 1), OptionsFor(factor), JobRunner::NeverStop(), faults);
    if (summary.ok()) break;
    EXPECT_THAT(summary, FailsWith(kExhausted, "bytes"));
  }
  EXPECT_GE(faults, 3);  // at least X, the residual and the solver's buffer
}

TEST(FakeDeviceTest, CountsUploadsFreedTooEarly) {
  FakeDevice device;
  JobRunner runner(device);
  const std::vector<std::byte> bytes(64);
  ASSERT_OK_AND_ASSIGN(Buffer waited_for, runner.Upload(bytes));
  ASSERT_OK(runner.context().Synchronize());
  waited_for.reset();
  EXPECT_EQ(device.counting_memory().freed_in_use(), 0);
  ASSERT_OK_AND_ASSIGN(Buffer arriving, runner.Upload(bytes));
  arriving.reset();
  EXPECT_EQ(device.counting_memory().freed_in_use(), 1);
}

}  // namespace
}  // namespace crout::testing::upload_lifetime_test
