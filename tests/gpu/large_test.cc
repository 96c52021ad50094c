// SPDX-License-Identifier: Apache-2.0

// Tests matrices with more elements than 32 bits can index.
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <utility>

#include "kernels/jobs/factorize.h"
#include "kernels/jobs/solve.h"
#include "kernels/util/stopwatch.h"
#include "tests/gpu/harness/jobs.h"
#include "tests/support/timing/failpoints.h"

namespace crout::large_test {
namespace {

constexpr int64_t kN = 46'400;  // kN * kN > 2^31

class GpuLargeTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    gpu_ = std::make_unique<Bench>(Gpu());
    Gpu().memory().TrimTo(0);  // the driver does not report the pool's cached memory as free
    size_t free = 0;
    size_t total = 0;
    ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
    constexpr size_t kNeeded = size_t{40} << 30;
    if (free < kNeeded) GTEST_SKIP() << "needs " << kNeeded << " bytes of free device memory";
  }

  template <class T>
  Buffer Zeros(int64_t n = kN) {
    Buffer buffer = gpu_->Allocate(n * n * sizeof(T));
    EXPECT_EQ(cudaMemset(buffer.data(), 0, buffer.size()), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);  // cudaMemset may return before it has run
    return buffer;
  }

  std::unique_ptr<Bench> gpu_;
};

TEST_F(GpuLargeTest, ImportFindsTheLastEntry) {
  const Buffer in = Zeros<float>();
  const Buffer out = gpu_->Allocate(in.size());
  const PackedMatrix packed{in.data(), DType::kFloat32, Layout::kRowMajor, kN, kN};
  const AnyMatrix matrix{out.data(), DType::kFloat32, kN, kN, kN};
  constexpr int64_t kLastRow = (kN - 1) * kN;  // packed offset of its first element
  const float value = -3;
  ASSERT_TRUE(gpu_->ops().CopyToDevice(&value, in.as<float>() + kLastRow, sizeof(value)).ok());
  ASSERT_TRUE(gpu_->ops().Import(packed, matrix).ok());
  const MatrixStats stats = gpu_->Wait().matrix;
  EXPECT_EQ(stats.first_non_finite, -1);
  EXPECT_EQ(stats.norm_one, 3);
  EXPECT_EQ(stats.norm_inf, 3);
  float transposed = 0;
  ASSERT_TRUE(
      gpu_->ops().CopyToHost(out.as<float>() + kN - 1, &transposed, sizeof(transposed)).ok());
  gpu_->Wait();
  EXPECT_EQ(transposed, value);

  const float nan = std::numeric_limits<float>::quiet_NaN();
  ASSERT_TRUE(gpu_->ops().CopyToDevice(&nan, in.as<float>() + kN * kN - 1, sizeof(nan)).ok());
  ASSERT_TRUE(gpu_->ops().Import(packed, matrix).ok());
  EXPECT_EQ(gpu_->Wait().matrix.first_non_finite, kN * kN - 1);
}

// The matrix is a cyclic shift. Every pivot needs an interchange, and all arithmetic is exact.
TEST_F(GpuLargeTest, FactorsAndSolvesAPermutation) {
  Buffer a = Zeros<double>();
  const std::vector<double> ones(kN, 1.0);
  ASSERT_EQ(
      cudaMemcpy(a.as<double>() + kN - 1, ones.data(), sizeof(double), cudaMemcpyHostToDevice),
      cudaSuccess);
  ASSERT_EQ(cudaMemcpy2D(a.as<double>() + kN, (kN + 1) * sizeof(double), ones.data(),
                         sizeof(double), sizeof(double), kN - 1, cudaMemcpyHostToDevice),
            cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  FactorizeOptions options = OptionsOf(Gpu(), DType::kFloat64);
  options.keep_matrix = false;
  options.determinant = true;
  KernelTimings timings;
  const PackedMatrix shape{nullptr, DType::kFloat64, Layout::kColumnMajor, kN, kN};
  auto factor = Factorize(
      gpu_->context(), std::move(a), shape, options, [] { return false; }, timings);
  ASSERT_TRUE(factor.ok()) << factor.status();
  EXPECT_EQ(factor->summary.info, 0);
  EXPECT_EQ(factor->summary.norm_one, 1);
  EXPECT_EQ(factor->summary.pivot_growth, 1);
  EXPECT_EQ(factor->summary.det_sign, -1);  // a cycle of even length
  EXPECT_EQ(factor->summary.det_log_abs, 0);

  HostMatrix b(kN);
  std::iota(b.begin(), b.end(), 1.0);
  HostMatrix expected(kN);
  for (int64_t i = 0; i < kN; ++i) expected[(i + 1) % kN] = b[i];
  for (const char* solver : {"getrs", "trsm"}) {
    SolveOptions solve;
    solve.solver = SolverOf(Gpu(), solver);
    solve.verify = false;
    auto solved = gpu_->jobs().Solve(*factor, b, 1, DType::kFloat64, Layout::kColumnMajor, solve);
    ASSERT_TRUE(solved.ok()) << solved.status();
    EXPECT_EQ(solved->x, expected) << solver;
  }
}

// The pool also keeps blocks over 8 GiB.
TEST_F(GpuLargeTest, TheSecondFactorizationAllocatesNothing) {
  constexpr int64_t kOrder = 40'000;
  testing::Failpoints failpoints;
  const std::vector<double> ones(kOrder, 1.0);
  const auto factor_identity = [&] {
    Stopwatch watch;
    Buffer a = Zeros<double>(kOrder);
    EXPECT_EQ(cudaMemcpy2D(a.data(), (kOrder + 1) * sizeof(double), ones.data(), sizeof(double),
                           sizeof(double), kOrder, cudaMemcpyHostToDevice),
              cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    KernelTimings timings;
    const PackedMatrix shape{nullptr, DType::kFloat64, Layout::kColumnMajor, kOrder, kOrder};
    const auto factor = Factorize(
        gpu_->context(), std::move(a), shape, OptionsOf(Gpu(), DType::kFloat64),
        [] { return false; }, timings);
    EXPECT_TRUE(factor.ok()) << factor.status();
    std::printf("n=%d: %.3f s in all, %.3f s of it the factorization; blocks from the driver: %d\n",
                static_cast<int>(kOrder), watch.Lap(), timings.factor,
                failpoints.reached("memory.acquire"));
  };
  factor_identity();
  const int first = failpoints.reached("memory.acquire");
  EXPECT_GE(first, 2) << "the matrix and its factor";
  factor_identity();
  EXPECT_EQ(failpoints.reached("memory.acquire"), first);
}

}  // namespace
}  // namespace crout::large_test
