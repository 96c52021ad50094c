// SPDX-License-Identifier: Apache-2.0

// Tests that jobs stay within their declared bytes, survive every failed allocation, and refuse
// invalid sizes.
#include <limits>

#include "kernels/jobs/factorize.h"
#include "kernels/jobs/solve.h"
#include "tests/support/fakes/fake_device.h"
#include "tests/support/matrices/packed_sparse.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::device_memory_test {
namespace {

constexpr int64_t kN = 30;
constexpr int64_t kNrhs = 4;
constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kComplex64,
                            DType::kComplex128};

std::vector<FactorRequest> FactorRequests() {
  std::vector<FactorRequest> requests;
  for (const char* algorithm : {"getrf", "cmpp"}) {
    for (const DType matrix : kTypes) {
      for (const DType factor : kTypes) {
        if (IsComplex(matrix) != IsComplex(factor)) continue;
        for (const Layout layout : {Layout::kColumnMajor, Layout::kRowMajor}) {
          for (const bool keep : {true, false}) {
            FactorRequest request;
            request.algorithm = algorithm;
            request.matrix_dtype = matrix;
            request.factor_dtype = factor;
            request.layout = layout;
            request.keep_matrix = keep;
            request.condition = keep;
            request.equilibrate = keep ? EquilibrateMode::kOn : EquilibrateMode::kAuto;
            requests.push_back(request);
            if (layout == Layout::kRowMajor || IsComplex(matrix)) continue;
            request.sparse = true;
            requests.push_back(request);
          }
        }
      }
    }
  }
  return requests;
}

class DeviceMemoryTest : public ::testing::Test {
 protected:
  absl::StatusOr<FactorizePlan> Plan(const FactorRequest& request) const {
    const auto options = runner_.Options(request, kN);
    if (!options.ok()) return options.status();
    const PackedMatrix shape{nullptr, request.matrix_dtype, request.layout, kN, kN};
    if (!request.sparse) return PlanFactorize(*options, shape);
    return PlanFactorize(*options, shape, PackSparse(a_, kN, request.matrix_dtype).nonzeros);
  }

  absl::StatusOr<Factorization> Factor(const FactorRequest& request) {
    if (request.sparse) return runner_.Factor(a_, kN, request);
    return runner_.FactorComplex(AsComplex(a_), kN, request);
  }

  // Moves the factor to host memory and back. Expects that a solve has the same result.
  void ExpectSolvesAfterAMove(Factorization factor) {
    SolveRequest request;
    request.max_refinement_steps = 2;
    request.error_bound = true;
    ASSERT_OK_AND_ASSIGN(const Solution before, runner_.Solve(factor, b_, kNrhs, request));
    CountingResource host(1 << 20);
    ASSERT_OK_AND_ASSIGN(const FactorParts copy, CopyToHost(runner_.context(), factor.parts, host));
    EXPECT_EQ(copy.bytes(), factor.parts.bytes());
    EXPECT_EQ(host.live_bytes(), copy.bytes());
    factor.parts = FactorParts();
    EXPECT_EQ(memory_.live_bytes(), 0u);
    ASSERT_OK_AND_ASSIGN(factor.parts, CopyToDevice(runner_.context(), copy));
    ASSERT_OK_AND_ASSIGN(const Solution after, runner_.Solve(factor, b_, kNrhs, request));
    EXPECT_EQ(after.x, before.x);
    EXPECT_EQ(after.summary.forward_error_bound, before.summary.forward_error_bound);
    host.FailAllocations(1, 1);
    EXPECT_THAT(CopyToHost(runner_.context(), factor.parts, host),
                FailsWith(absl::StatusCode::kResourceExhausted, "bytes"));
    EXPECT_EQ(host.live_bytes(), copy.bytes());
  }

  FakeDevice device_{{.has_sparse_ops = true}};
  CountingResource& memory_ = device_.counting_memory();
  JobRunner runner_{device_};
  const HostMatrix a_ = RandomSparse(kN, 0.2, 1);
  const HostMatrix b_ = RandomMatrix(kN, kNrhs, 2);
};

TEST_F(DeviceMemoryTest, FactorizeStaysWithinItsPlan) {
  for (const FactorRequest& request : FactorRequests()) {
    ASSERT_OK_AND_ASSIGN(const FactorizePlan plan, Plan(request));
    const JobBytes& declared = plan.bytes;
    memory_.ResetPeak();
    ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(request));
    EXPECT_LE(memory_.peak_bytes(), declared.peak);
    EXPECT_LE(factor.parts.bytes(), declared.kept);
    EXPECT_EQ(memory_.live_bytes(), factor.parts.bytes());
    EXPECT_GE(2 * memory_.peak_bytes(), declared.peak);  // declares at most twice the bytes in use
  }
}

TEST_F(DeviceMemoryTest, SolveStaysWithinItsPlan) {
  for (const auto& [factor_dtype, sparse] : {std::pair(DType::kFloat32, false),
                                             {DType::kFloat64, false},
                                             {DType::kFloat64, true},
                                             {DType::kComplex64, false},
                                             {DType::kComplex128, false}}) {
    FactorRequest request;
    request.matrix_dtype = IsComplex(factor_dtype) ? DType::kComplex128 : DType::kFloat64;
    request.factor_dtype = factor_dtype;
    request.sparse = sparse;
    ASSERT_OK_AND_ASSIGN(const Factorization factor, Factor(request));
    const size_t kept = memory_.live_bytes();
    for (const DType dtype : kTypes) {
      for (const Layout layout : {Layout::kColumnMajor, Layout::kRowMajor}) {
        for (const bool all : {false, true}) {
          SolveRequest solve{"auto", dtype, layout};
          solve.verify = solve.error_bound = solve.componentwise_error = all;
          solve.max_refinement_steps = all ? 3 : 0;
          ASSERT_OK_AND_ASSIGN(const SolveOptions options,
                               runner_.Options(solve, factor.summary, kNrhs));
          ASSERT_OK_AND_ASSIGN(
              const SolvePlan plan,
              PlanSolve(options, factor.summary, {nullptr, dtype, layout, kN, kNrhs}));
          const JobBytes& declared = plan.bytes;
          memory_.ResetPeak();
          ASSERT_OK(runner_.SolveComplex(factor, AsComplex(b_), kNrhs, solve));
          EXPECT_EQ(memory_.peak_bytes() - kept, declared.peak);
          EXPECT_EQ(memory_.live_bytes(), kept);
          EXPECT_EQ(declared.kept, 0u);
        }
      }
    }
  }
}

TEST_F(DeviceMemoryTest, FactorizeReportsFailedAllocationsAndFreesAllMemory) {
  FactorRequest request;
  request.factor_dtype = DType::kFloat32;
  request.condition = true;
  request.equilibrate = EquilibrateMode::kOn;
  for (const bool sparse : {false, true}) {
    request.sparse = sparse;
    int failures = 0;
    for (;; ++failures) {
      memory_.FailAllocations(1, failures);
      const auto factor = runner_.Factor(a_, kN, request);
      if (factor.ok()) break;
      EXPECT_THAT(factor, FailsWith(absl::StatusCode::kResourceExhausted, "bytes"));
      EXPECT_EQ(memory_.live_buffers(), 0);
    }
    EXPECT_GE(failures, 6);  // at least upload, lu, ipiv, scales, workspace, estimator
  }
}

TEST_F(DeviceMemoryTest, SolveReportsFailedAllocationsAndFreesAllMemory) {
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner_.Factor(a_, kN, {}));
  memory_.FailAllocations(0);
  const int kept = memory_.live_buffers();
  SolveRequest solve;
  solve.layout = Layout::kRowMajor;
  solve.error_bound = true;
  solve.max_refinement_steps = 1;
  int failures = 0;
  for (;; ++failures) {
    memory_.FailAllocations(1, failures);
    const auto solution = runner_.Solve(factor, b_, kNrhs, solve);
    EXPECT_EQ(memory_.live_buffers(), kept);
    if (solution.ok()) break;
    EXPECT_THAT(solution, FailsWith(absl::StatusCode::kResourceExhausted, "bytes"));
  }
  EXPECT_GE(failures, 6);
}

TEST_F(DeviceMemoryTest, MovesFactorsBetweenTiers) {
  FactorRequest request;
  request.equilibrate = EquilibrateMode::kOn;
  for (const bool sparse : {false, true}) {
    request.sparse = sparse;
    ASSERT_OK_AND_ASSIGN(Factorization factor, runner_.Factor(a_, kN, request));
    ExpectSolvesAfterAMove(std::move(factor));
  }
}

TEST_F(DeviceMemoryTest, RefusesInvalidSizes) {
  ASSERT_OK_AND_ASSIGN(const FactorizeOptions options, runner_.Options(FactorRequest{}, kN));
  const auto square = [](int64_t n) {
    return PackedMatrix{nullptr, DType::kFloat64, Layout::kColumnMajor, n, n};
  };
  for (const int64_t n : {int64_t{-1}, int64_t{1} << 31, int64_t{1} << 32, int64_t{1} << 62,
                          std::numeric_limits<int64_t>::max()}) {
    const auto plan = PlanFactorize(options, square(n));
    EXPECT_FALSE(plan.ok()) << n;
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_OK(PlanFactorize(options, square(int64_t{1} << 20)));
}

}  // namespace
}  // namespace crout::testing::device_memory_test
