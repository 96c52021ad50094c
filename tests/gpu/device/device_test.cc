// SPDX-License-Identifier: Apache-2.0

// Tests the CUDA device: memory, tiers, determinism and concurrent contexts.
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/jobs/factorize.h"
#include "kernels/jobs/solve.h"
#include "tests/gpu/harness/jobs.h"
#include "tests/support/ratios.h"

namespace crout::device_test {
namespace {

using ::crout::testing::GalleryNamed;
using ::crout::testing::kThreshold;
using ::crout::testing::RandomMatrix;

class GpuDeviceTest : public GpuTest {};

TEST_F(GpuDeviceTest, DescribesItself) {
  EXPECT_EQ(Gpu().info().name, "cuda:0");
  EXPECT_EQ(Gpu().info().kind, DeviceKind::kCuda);
  EXPECT_FALSE(Gpu().info().description.empty());
  EXPECT_GT(Gpu().info().memory_bytes, uint64_t{1} << 30);
  EXPECT_TRUE(Gpu().healthy());
}

TEST_F(GpuDeviceTest, RefusesAnAbsentGpuAndInvalidOptions) {
  EXPECT_EQ(cuda::MakeDevice(cuda::CountCudaDevices(), cuda::Options()).status().code(),
            absl::StatusCode::kNotFound);
  cuda::Options none;
  none.upload_blocks = 0;
  EXPECT_EQ(cuda::MakeDevice(0, none).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(GpuDeviceTest, StaysHealthyAfterLackOfMemory) {
  const size_t too_much = Gpu().info().memory_bytes + 1;
  auto buffer = Gpu().memory().Allocate(too_much);
  EXPECT_EQ(buffer.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(buffer.status().message()), ::testing::HasSubstr("bytes"));
  EXPECT_TRUE(Gpu().healthy());
  // The next launch must not report this failure.
  Bench gpu(Gpu());
  auto factor = gpu.jobs().Factor(GalleryNamed("random").make(129), 129, DType::kFloat64,
                                  Layout::kRowMajor, OptionsOf(Gpu(), DType::kFloat64));
  EXPECT_TRUE(factor.ok()) << factor.status();
}

TEST_F(GpuDeviceTest, FactorsSurviveEvictionToHostMemory) {
  constexpr int64_t kN = 300;
  Bench gpu(Gpu());
  const HostMatrix a = GalleryNamed("graded").make(kN);
  FactorizeOptions options = OptionsOf(Gpu(), DType::kFloat64);
  options.equilibrate = EquilibrateMode::kOn;
  auto factor = gpu.jobs().Factor(a, kN, DType::kFloat64, Layout::kRowMajor, options);
  ASSERT_TRUE(factor.ok());
  const HostFactor before = *gpu.jobs().Download(*factor);
  const size_t bytes = factor->parts.bytes();
  for (MemoryResource* tier : {&Gpu().staging_memory(), &Host().memory()}) {
    auto on_host = CopyToHost(gpu.context(), factor->parts, *tier);
    ASSERT_TRUE(on_host.ok()) << on_host.status();
    factor->parts = {};
    auto back = CopyToDevice(gpu.context(), *on_host);
    ASSERT_TRUE(back.ok()) << back.status();
    factor->parts = *std::move(back);
  }
  EXPECT_EQ(factor->parts.bytes(), bytes);
  const HostFactor after = *gpu.jobs().Download(*factor);
  EXPECT_TRUE(SameBits(after.lu, before.lu));
  EXPECT_EQ(after.ipiv, before.ipiv);
  EXPECT_TRUE(SameBits(after.scales, before.scales));
  EXPECT_LT(FactorRatioOf(gpu, *factor, a), kThreshold);
}

// Copies to the second GPU and back.
TEST_F(GpuDeviceTest, CopiesBetweenGpus) {
  if (cuda::CountCudaDevices() < 2) GTEST_SKIP() << "one CUDA device on this machine";
  Bench first(Gpu());
  auto device = cuda::MakeDevice(1, cuda::Options());
  ASSERT_TRUE(device.ok()) << device.status();
  Bench second(**device);
  std::vector<double> values(size_t{1} << 20);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  const Buffer from = first.Put(values);
  const Buffer there = second.Allocate(from.size());
  ASSERT_TRUE(second.ops().CopyOnDevice(from.data(), there.data(), from.size()).ok());
  second.Wait();
  const Buffer back = first.Allocate(from.size());
  ASSERT_TRUE(first.ops().CopyOnDevice(there.data(), back.data(), from.size()).ok());
  first.Wait();
  EXPECT_EQ(first.Get<double>(back), values);
}

struct Outcome {
  HostMatrix lu;
  HostMatrix x;
  double norm = 0;
  double backward_error = 0;
};

Outcome FactorAndSolve(Bench& gpu, const HostMatrix& a, int64_t n, const char* solver) {
  auto factor = gpu.jobs().Factor(a, n, DType::kFloat64, Layout::kRowMajor,
                                  OptionsOf(Gpu(), DType::kFloat64));
  SolveOptions options;
  options.solver = SolverOf(Gpu(), solver);
  auto solved = gpu.jobs().Solve(*factor, RandomMatrix(n, 10, 2), 10, DType::kFloat64,
                                 Layout::kColumnMajor, options);
  return {gpu.jobs().Download(*factor)->lu, solved->x, factor->summary.norm_one,
          *solved->summary.backward_error};
}

bool Same(const Outcome& a, const Outcome& b) {
  return SameBits(a.lu, b.lu) && SameBits(a.x, b.x) && a.norm == b.norm &&
         a.backward_error == b.backward_error;
}

TEST_F(GpuDeviceTest, GivesTheSameBitsUnderConcurrentWork) {
  for (const int64_t n : {200, 700}) {
    const HostMatrix a = GalleryNamed("random").make(n);
    for (const char* solver : {"getrs", "trsm"}) {
      Bench alone(Gpu());
      const Outcome expected = FactorAndSolve(alone, a, n, solver);
      std::vector<std::thread> threads;
      std::atomic<int> same{0};
      for (int t = 0; t < 8; ++t) {
        threads.emplace_back([&, t] {
          Bench mine(Gpu());
          for (int round = 0; round < 4; ++round) {
            // Half of the threads also factor other sizes.
            if (t % 2 == 1)
              FactorAndSolve(mine, GalleryNamed("random").make(150 + t), 150 + t, solver);
            same += Same(FactorAndSolve(mine, a, n, solver), expected);
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
      EXPECT_EQ(same, 32) << solver << " n=" << n;
    }
  }
}

TEST_F(GpuDeviceTest, PredictedTimesGrowWithTheWork) {
  for (const auto& algorithm : Gpu().algorithms()) {
    double last = 0;
    for (const int64_t n : {1, 100, 256, 1000, 5000, 20000, 60000}) {
      const double seconds = algorithm->PredictSeconds(DType::kFloat64, n);
      EXPECT_GT(seconds, last) << n;
      last = seconds;
    }
  }
  for (const auto& solver : Gpu().solvers()) {
    if (!solver->SupportsDense(DType::kFloat64)) continue;
    double last = 0;
    for (const int64_t n : {1, 100, 256, 1000, 5000, 20000, 60000}) {
      const double seconds = solver->PredictSeconds(DType::kFloat64, n, 1);
      EXPECT_GT(seconds, last) << solver->name() << " n=" << n;
      EXPECT_GT(solver->PredictSeconds(DType::kFloat64, n, 1000), seconds);
      last = seconds;
    }
  }
}

}  // namespace
}  // namespace crout::device_test
