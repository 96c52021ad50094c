// SPDX-License-Identifier: Apache-2.0

// Tests faults of the GPU libraries, by fake libraries.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <utility>
#include <vector>

#include "server/engine/error.h"
#include "tests/server/groups/gpus_under_test.h"
#include "tests/support/matrices/gallery.h"
#include "tests/support/ratios.h"
#include "tests/support/timing/eventually.h"

namespace crout::testing::cusolvermp_fault_test {
namespace {

constexpr int64_t kN = 300;
constexpr int kInternalError = 7;  // CUSOLVER_STATUS_INTERNAL_ERROR
using Clock = std::chrono::steady_clock;

class CusolvermpFaultTest : public GpuGroupTest<2> {
 protected:
  void SetUp() override {
    GpuGroupTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_TRUE(Eventually([this] { return !(pids_ = group().pids()).empty(); }));
  }

  // Starts a factorization on another thread.
  static std::future<absl::Status> StartFactor(std::function<bool()> stop = [] { return false; }) {
    return std::async(std::launch::async, [stop = std::move(stop)] {
      JobRunner runner(device());
      return runner.Factor(a_, kN, Cusolvermp(), stop).status();
    });
  }
  static void ExpectLost(const absl::Status& status, const char* text) {
    EXPECT_THAT(status, FailsWith(absl::StatusCode::kUnavailable, text));
    EXPECT_EQ(ReasonOf(status), kReasonGroupLost);
    EXPECT_TRUE(RetryAfterOf(status));
  }
  // Expects that the processes of the last formation are gone, and that a new one works.
  void ExpectFormsAgain() {
    gpus().SetFaults("");
    const std::vector<pid_t> old = pids_;
    ASSERT_TRUE(Eventually([&] {
      pids_ = group().pids();
      return !pids_.empty() && pids_ != old;
    }));
    for (const pid_t pid : old) EXPECT_FALSE(IsAlive(pid)) << pid;
    JobRunner runner(device());
    ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.Factor(a_, kN, Cusolvermp()));
    ASSERT_OK_AND_ASSIGN(const Solution solution, runner.Solve(factor, b_, 1, BySolver()));
    EXPECT_LT(SolveRatio(a_, kN, Op::kNone, solution.x, b_, 1, DType::kFloat64), kThreshold);
  }

  static inline const HostMatrix a_ = RandomMatrix(kN, kN, 1);
  static inline const HostMatrix b_ = RandomMatrix(kN, 1, 2);
  std::vector<pid_t> pids_;
};

// One rank fails and the others wait for it, which a grid of 4 x 1 did on four H100.
TEST_F(CusolvermpFaultTest, AFailedFactorizationEndsAllRanks) {
  for (const char* function : {"cusolverMpGetrf_bufferSize", "cusolverMpGetrf"}) {
    for (const int gpu : {0, 1}) {
      SCOPED_TRACE(absl::StrCat(function, " on GPU ", gpu));
      gpus().SetFaults(absl::StrCat(function, " ", gpu, " ", kInternalError));
      const Clock::time_point start = Clock::now();
      ExpectLost(StartFactor().get(),
                 absl::StrCat("cuda:", gpu, ": ", function, ": cusolverStatus_t 7").c_str());
      EXPECT_LT(Clock::now() - start, RankGroup::kSilence);
      ExpectFormsAgain();
    }
  }
}

TEST_F(CusolvermpFaultTest, AFailedSolveEndsAllRanksAndTheFactorSurvives) {
  JobRunner runner(device());
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.Factor(a_, kN, Cusolvermp()));
  for (const char* function : {"cusolverMpGetrs", "cudaMemcpyAsync"}) {
    SCOPED_TRACE(function);
    gpus().SetFaults(absl::StrCat(function, " 1 ", kInternalError));
    ExpectLost(runner.Solve(factor, b_, 1, BySolver()).status(), function);
    ExpectFormsAgain();
    ASSERT_OK_AND_ASSIGN(const Solution solution, runner.Solve(factor, b_, 1, BySolver()));
    EXPECT_LT(SolveRatio(a_, kN, Op::kNone, solution.x, b_, 1, DType::kFloat64), kThreshold);
  }
}

TEST_F(CusolvermpFaultTest, ACancelledJobDoesNotWaitForALibraryThatHangs) {
  gpus().SetFaults(absl::StrCat("cusolverMpGetrf 1 ", fake_gpu::kHang));
  const int64_t hung = gpus().Calls("fault:cusolverMpGetrf");
  const auto stop = [hung] { return gpus().Calls("fault:cusolverMpGetrf") > hung; };
  const Clock::time_point start = Clock::now();
  EXPECT_THAT(StartFactor(stop).get(), FailsWith(absl::StatusCode::kCancelled, ""));
  EXPECT_LT(Clock::now() - start, RankGroup::kSilence);
  ExpectFormsAgain();
}

TEST_F(CusolvermpFaultTest, AKilledRankEndsAJobThatHangs) {
  gpus().SetFaults(absl::StrCat("cusolverMpGetrf 1 ", fake_gpu::kHang));
  const int64_t hung = gpus().Calls("fault:cusolverMpGetrf");
  std::future<absl::Status> job = StartFactor();
  ASSERT_TRUE(Eventually([&] { return gpus().Calls("fault:cusolverMpGetrf") > hung; }));
  kill(pids_[0], SIGKILL);
  ExpectLost(job.get(), "ended. It forms again; retry the call");
  ExpectFormsAgain();
}

TEST_F(CusolvermpFaultTest, ShortMemoryOfOneGpuEndsTheJobAlone) {
  const int64_t formations = group().formations();
  JobRunner runner(device());
  ASSERT_OK_AND_ASSIGN(const Factorization factor, runner.Factor(a_, kN, Cusolvermp()));
  gpus().SetFaults("memory 1 1000");
  EXPECT_THAT(StartFactor().get(),
              FailsWith(absl::StatusCode::kResourceExhausted, "cuda:1 has 1000 bytes free"));
  EXPECT_THAT(runner.Solve(factor, b_, 1, BySolver()),
              FailsWith(absl::StatusCode::kResourceExhausted, "cuda:1 has 1000 bytes free"));
  // Enough for the matrix, but not for the library.
  gpus().SetFaults("memory 1 312000");
  EXPECT_THAT(StartFactor().get(),
              FailsWith(absl::StatusCode::kResourceExhausted, "bytes free, and the job needs"));
  gpus().SetFaults("");
  EXPECT_OK(runner.Solve(factor, b_, 1, BySolver()));
  EXPECT_EQ(group().formations(), formations);
}

class CusolvermpStartTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (FindHelperProgram("crout-rank").empty()) GTEST_SKIP() << "crout-rank is not built";
  }
  static absl::Status Start(const GroupSpec& spec) {
    return MakeGroupDevice(spec, host::MakeExecutor(1)).status();
  }
};

TEST_F(CusolvermpStartTest, RefusesOtherVersions) {
  const FakeGpus gpus;
  gpus.SetFaults("cusolverMpGetVersion 1 901");
  EXPECT_THAT(Start(GpuSpec(2)), FailsWith(absl::StatusCode::kUnavailable,
                                           "cuSOLVERMp has version 0.9.1; crout-rank needs 0.8"));
  gpus.SetFaults("ncclGetVersion -1 22703");  // before the rank has chosen its GPU
  EXPECT_THAT(Start(GpuSpec(1)), FailsWith(absl::StatusCode::kUnavailable,
                                           "NCCL has version 2.27.3; cuSOLVERMp 0.8 needs 2.28"));
}

TEST_F(CusolvermpStartTest, ReportsGpusThatCannotBeUsed) {
  const FakeGpus gpus;
  GroupSpec spec = GpuSpec(2);
  spec.gpus[1] = fake_gpu::kGpus;
  EXPECT_THAT(Start(spec), FailsWith(absl::StatusCode::kUnavailable,
                                     "cuda:8: cudaSetDevice: invalid device ordinal"));
  gpus.SetFaults("ncclCommInitRank 0 2");
  EXPECT_THAT(Start(GpuSpec(2)), FailsWith(absl::StatusCode::kUnavailable,
                                           "cuda:0: ncclCommInitRank: unhandled system error"));
}

TEST_F(CusolvermpStartTest, NamesThePackagesOfMissingLibraries) {
  const FakeGpus gpus;
  // A folder without libcusolverMp.so.0.
  const std::string folder = absl::StrCat(std::getenv(fake_gpu::kFolderVariable), "/libraries");
  std::filesystem::create_directory(folder);
  for (const char* name : {"libcudart.so.13", "libnccl.so.2"}) {
    std::filesystem::create_symlink(absl::StrCat(CROUT_FAKE_GPU_LIBRARIES, "/", name),
                                    absl::StrCat(folder, "/", name));
  }
  const ScopedVariable path("LD_LIBRARY_PATH", folder);
  EXPECT_THAT(Start(GpuSpec(1)),
              FailsWith(absl::StatusCode::kUnavailable,
                        "Install the PyPI packages nvidia-cusolvermp-cu13==0.8.0.3126"));
}

}  // namespace
}  // namespace crout::testing::cusolvermp_fault_test
