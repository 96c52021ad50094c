// SPDX-License-Identifier: Apache-2.0

// Tests that the resident memory of solves on the host device stays within their plans.
#include <fstream>
#include <string>

#include "kernels/host/device/host_device.h"
#include "kernels/util/sanitizers.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::resident_memory_test {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
// Allowance for scratch memory of a context and for memory cached by the heap.
constexpr size_t kConstant = 4 * kMiB;

// Returns the resident bytes of this process: now ("VmRSS"), or their maximum since ResetPeak()
// ("VmHWM").
size_t ResidentBytes(const std::string& which) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    size_t kib = 0;
    if (word == which + ":" && status >> kib) return kib * 1024;
  }
  return 0;
}
bool ResetPeak() {
  std::ofstream clear("/proc/self/clear_refs");
  return static_cast<bool>(clear << "5" << std::flush);
}

class ResidentMemoryTest : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "freed memory stays resident";
    if (!ResetPeak()) GTEST_SKIP() << "the kernel does not let the peak be reset";
  }

  // Runs job(), which allocates its own memory, and expects that it adds at most `planned` bytes to
  // the resident memory.
  template <class Job>
  void ExpectWithin(size_t planned, Job job) {
    job();
    ASSERT_TRUE(ResetPeak());
    const size_t before = ResidentBytes("VmRSS");
    job();
    const size_t peak = ResidentBytes("VmHWM");
    EXPECT_LE(peak, before + planned + kConstant)
        << (peak - before) / kMiB << " MiB of " << planned / kMiB;
  }

  // The device caches no freed memory.
  const std::unique_ptr<Device> device_ = host::MakeDevice({.cached_bytes = 0});
  JobRunner runner_{*device_};
};

TEST_P(ResidentMemoryTest, SolvesOfManyColumnsStayWithinTheirPlan) {
  constexpr int64_t kN = 50;
  constexpr int64_t kNrhs = 40000;  // |X| alone is 15 MiB
  const DType type = GetParam();
  FactorRequest request;
  request.matrix_dtype = request.factor_dtype = type;
  ASSERT_OK_AND_ASSIGN(const Factorization factor,
                       runner_.FactorComplex(AsComplex(RandomMatrix(kN, kN, 1)), kN, request));
  SolveRequest solve;
  solve.dtype = type;
  solve.componentwise_error = true;
  const std::vector<std::byte> b = Packed(AsComplex(RandomMatrix(kN, kNrhs, 2)), kN, kNrhs, type);
  for (const Op op : {Op::kNone, Op::kTranspose}) {
    solve.op = op;
    ASSERT_OK_AND_ASSIGN(const SolveOptions options, runner_.Options(solve, factor.summary, kNrhs));
    ASSERT_OK_AND_ASSIGN(
        const SolvePlan plan,
        PlanSolve(options, factor.summary, {nullptr, type, Layout::kColumnMajor, kN, kNrhs}));
    std::vector<std::byte> out(plan.delivered.bytes());
    ExpectWithin(plan.bytes.peak, [&] {
      ASSERT_OK_AND_ASSIGN(Buffer upload, runner_.Upload(b));
      ASSERT_OK(Solve(runner_.context(), plan, factor, std::move(upload), out.data(),
                      JobRunner::NeverStop(), runner_.timings()));
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ResidentMemoryTest,
                         ::testing::Values(DType::kFloat32, DType::kFloat64, DType::kComplex64,
                                           DType::kComplex128));

}  // namespace
}  // namespace crout::testing::resident_memory_test
