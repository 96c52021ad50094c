// SPDX-License-Identifier: Apache-2.0

// Tests crout_lu and crout_solve with production orders and blocking: panels of two blocks, panels
// on a grid concurrent with the rest of the update, and more elements than 32 bits can index. The
// factor's probe and the residual check the results, because they cost O(n^2) and run on the
// device.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/jobs/factorize.h"
#include "kernels/jobs/solve.h"
#include "kernels/numerics/factor_probe.h"
#include "kernels/numerics/normalizing_scale.h"
#include "tests/gpu/harness/jobs.h"
#include "tests/support/ratios.h"

namespace crout::production_test {
namespace {

class GpuProductionTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped()) gpu_ = std::make_unique<Bench>(Gpu());
  }

  template <class T>
  void FactorsAndSolves(int64_t n);

 private:
  // Returns an n x n matrix of random numbers. The sequence repeats after a prime number of
  // elements, so that columns differ. The host would need too much time for a longer sequence.
  template <class T>
  Buffer RandomOnDevice(int64_t n);
  template <class T>
  void ExpectSolves(const Factorization& factor);
  // Expects that the probe detects a change of the last element of the factor. The index of this
  // element exceeds 2^31 in a large matrix.
  template <class T>
  void ExpectProbeSeesAnError(const Factorization& factor);

  std::unique_ptr<Bench> gpu_;
};

template <class T>
Buffer GpuProductionTest::RandomOnDevice(int64_t n) {
  constexpr int64_t kPeriod = 16'777'259;
  const Buffer random = gpu_->Put(RandomVector<T>(kPeriod, 21));
  Buffer a = gpu_->Allocate(n * n * sizeof(T));
  for (int64_t begin = 0; begin < n * n; begin += kPeriod) {
    const int64_t count = std::min(kPeriod, n * n - begin);
    EXPECT_TRUE(gpu_->ops().CopyOnDevice(random.data(), a.as<T>() + begin, count * sizeof(T)).ok());
  }
  gpu_->Wait();
  return a;
}

template <class T>
void GpuProductionTest::ExpectSolves(const Factorization& factor) {
  constexpr int64_t kColumns = 5;
  SolveOptions options;
  options.solver = SolverOf(Gpu(), "crout_solve");
  const HostMatrix b = testing::RandomMatrix(factor.summary.n, kColumns, 22);
  for (const Op op : {Op::kNone, Op::kTranspose}) {
    options.op = op;
    const auto solved =
        gpu_->jobs().Solve(factor, b, kColumns, kDTypeOf<T>, Layout::kColumnMajor, options);
    ASSERT_TRUE(solved.ok()) << solved.status();
    EXPECT_EQ(solved->summary.solver, "crout_solve");
    // The sum of n rounding errors grows like a random walk.
    const double walk = std::sqrt(static_cast<double>(factor.summary.n));
    EXPECT_LT(*solved->summary.backward_error, 2 * walk * UnitRoundoff(kDTypeOf<T>));
  }
}

template <class T>
void GpuProductionTest::ExpectProbeSeesAnError(const Factorization& factor) {
  const int64_t n = factor.summary.n;
  T* const last = factor.lu().template as<T>() + n * n - 1;
  const T wrong = 1e4;
  ASSERT_TRUE(gpu_->ops().CopyToDevice(&wrong, last, sizeof(wrong)).ok());
  const Buffer work = gpu_->Allocate(kFactorProbeVectors * n * sizeof(double));
  const FactorProbe probe{n, 1, work.as<double>()};
  ASSERT_TRUE(gpu_->ops().StartProbe({factor.matrix().data(), kDTypeOf<T>, n, n, n}, probe).ok());
  ASSERT_TRUE(
      gpu_->ops().InspectFactor(factor.view().lu, false, factor.ipiv().as<int64_t>(), probe).ok());
  EXPECT_GT(FactorQuality(gpu_->Wait().factor.probe, probe, factor.summary.norm_one, kDTypeOf<T>),
            testing::kThreshold);
}

template <class T>
void GpuProductionTest::FactorsAndSolves(int64_t n) {
  SCOPED_TRACE(::testing::Message() << "n=" << n << " " << NameOf(kDTypeOf<T>));
  size_t free = 0;
  size_t total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  const size_t needed = 2 * n * n * sizeof(T) + (size_t{3} << 30);
  if (total < needed) GTEST_SKIP() << "needs " << needed << " bytes of device memory";
  FactorizeOptions options = OptionsOf(Gpu(), kDTypeOf<T>, "crout_lu");
  options.equilibrate = EquilibrateMode::kOff;
  options.prepare = SolverOf(Gpu(), "crout_solve");
  KernelTimings timings;
  const auto factor = Factorize(
      gpu_->context(), RandomOnDevice<T>(n), {nullptr, kDTypeOf<T>, Layout::kColumnMajor, n, n},
      options, [] { return false; }, timings);
  ASSERT_TRUE(factor.ok()) << factor.status();
  EXPECT_EQ(factor->summary.info, 0);
  EXPECT_LT(factor->summary.pivot_growth, static_cast<double>(n));
  EXPECT_GT(*factor->summary.quality, 0);
  EXPECT_LT(*factor->summary.quality, testing::kThreshold / 10);
  ExpectSolves<T>(*factor);
  ExpectProbeSeesAnError<T>(*factor);
}

// Panels have two blocks while enough columns are left: only the first panels, or most panels.
TEST_F(GpuProductionTest, FactorsFloat64PanelsOfTwoBlocks) {
  for (const int64_t n : {12'289, 12'801, 17'000}) FactorsAndSolves<double>(n);
}

TEST_F(GpuProductionTest, FactorsFloat32PanelsOfTwoBlocks) {
  for (const int64_t n : {24'577, 30'001}) FactorsAndSolves<float>(n);
}

// Panels with more rows than a cluster holds use a grid, concurrent with the look-ahead update.
TEST_F(GpuProductionTest, FactorsFloat64PanelsOnAGrid) { FactorsAndSolves<double>(33'300); }

// 46'400^2 > 2^31.
TEST_F(GpuProductionTest, FactorsFloat64BeyondThirtyTwoBitIndices) {
  FactorsAndSolves<double>(46'400);
}
TEST_F(GpuProductionTest, FactorsFloat32BeyondThirtyTwoBitIndices) {
  FactorsAndSolves<float>(46'400);
}

}  // namespace
}  // namespace crout::production_test
