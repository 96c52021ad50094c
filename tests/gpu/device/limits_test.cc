// SPDX-License-Identifier: Apache-2.0

// Tests the limits of smaller GPUs on this GPU. Every method that is available under these limits
// must be correct, and `auto` must choose one of them.
#include <map>
#include <memory>
#include <string>

#include "kernels/algorithm_registry.h"
#include "kernels/cuda/device/device_limits.h"
#include "kernels/cuda/icm/icm_plan.h"
#include "kernels/cuda/icm/section_sweeps.h"
#include "kernels/cuda/solve/invert_diagonal.h"
#include "kernels/jobs/factorize.h"
#include "kernels/jobs/solve.h"
#include "tests/gpu/harness/jobs.h"
#include "tests/support/ratios.h"

namespace crout::cuda::limits_test {
namespace {

using ::crout::testing::GalleryNamed;
using ::crout::testing::kThreshold;
using ::crout::testing::RandomMatrix;
using ::crout::testing::Rounded;

struct LesserGpu {
  const char* name;
  CudaLimits limits;
  bool searches;  // whether icmpp has enough shared memory
};

constexpr size_t kShared80 = size_t{163} << 10;
constexpr size_t kShared86 = size_t{99} << 10;  // also sm_89 and sm_120
constexpr size_t kShared75 = size_t{64} << 10;

const LesserGpu kLesserGpus[] = {
    {"Sm80", {.shared_bytes = kShared80, .cluster_blocks = 0}, true},
    {"Sm86", {.shared_bytes = kShared86, .cluster_blocks = 0}, true},
    {"Sm120", {.shared_bytes = kShared86, .cluster_blocks = 8}, true},
    {"ClustersOf8", {.cluster_blocks = 8}, true},
    {"ClustersOf2", {.cluster_blocks = 2}, true},
    {"Least", {.multiprocessors = 4, .shared_bytes = kShared75, .cluster_blocks = 0}, false},
};

class LimitsTest : public GpuTest, public ::testing::WithParamInterface<LesserGpu> {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    device_ = MadeOnce();
    ASSERT_NE(device_, nullptr);
    gpu_ = std::make_unique<Bench>(*device_);  // creates a context, which runs every method once
  }

  // Returns the device with these limits, which exists until the process ends. Null if the device
  // cannot be created; the test then fails.
  static Device* MadeOnce() {
    static auto* const devices = new std::map<std::string, std::unique_ptr<Device>>();
    std::unique_ptr<Device>& device = (*devices)[GetParam().name];
    if (device == nullptr) {
      Options options;
      options.limits = GetParam().limits;
      auto made = MakeDevice(0, options);
      EXPECT_TRUE(made.ok()) << made.status();
      if (made.ok()) device = *std::move(made);
    }
    return device.get();
  }

  void ExpectFactors(const LuAlgorithm& algorithm, int64_t n, DType dtype, int64_t section = 0);
  void ExpectSolves(const Factorization& factor);

  Device* device_ = nullptr;
  std::unique_ptr<Bench> gpu_;
};

void LimitsTest::ExpectFactors(const LuAlgorithm& algorithm, int64_t n, DType dtype,
                               int64_t section) {
  SCOPED_TRACE(::testing::Message()
               << algorithm.traits().name << " n=" << n << " " << NameOf(dtype));
  const bool pivots = algorithm.traits().pivoting != PivotRule::kNone;
  const HostMatrix a =
      Rounded(GalleryNamed(pivots ? "random" : "diagonally_dominant").make(n), dtype);
  FactorizeOptions options;
  options.algorithm = &algorithm;
  options.factor_dtype = dtype;
  options.equilibrate = EquilibrateMode::kOff;
  options.parameters.section_size = section;
  options.prepare = FindSolverToPrepare(*device_, algorithm.traits().unit_diagonal, dtype);
  auto factor = gpu_->jobs().Factor(a, n, dtype, Layout::kColumnMajor, options);
  ASSERT_TRUE(factor.ok()) << factor.status();
  EXPECT_EQ(factor->summary.info, 0);
  // The ratio costs O(n^3) on the host, so larger factors are probed.
  constexpr int64_t kLargestInFull = 500;
  EXPECT_LT(n <= kLargestInFull ? FactorRatioOf(*gpu_, *factor, a)
                                : ProbedFactorRatioOf(*gpu_, *factor, a),
            kThreshold);
  ExpectSolves(*factor);
}

void LimitsTest::ExpectSolves(const Factorization& factor) {
  const FactorSummary& summary = factor.summary;
  for (const auto& solver : device_->solvers()) {
    if (!solver->SupportsDense(summary.factor_dtype)) continue;
    if (!solver->Supports(summary.unit_diagonal)) continue;
    SolveOptions options;
    options.solver = solver.get();
    for (const int64_t nrhs : {1, 20}) {
      SCOPED_TRACE(::testing::Message() << "solver " << solver->name() << " nrhs=" << nrhs);
      const auto solved = gpu_->jobs().Solve(factor, RandomMatrix(summary.n, nrhs, 5), nrhs,
                                             summary.factor_dtype, Layout::kColumnMajor, options);
      ASSERT_TRUE(solved.ok()) << solved.status();
      EXPECT_EQ(solved->summary.solver, solver->name());
      const double unit = summary.factor_dtype == DType::kFloat64 ? 0x1p-53 : 0x1p-24;
      EXPECT_LT(*solved->summary.backward_error, static_cast<double>(summary.n) * unit);
    }
  }
}

TEST_P(LimitsTest, FactorsAndSolvesWithEveryAvailableMethod) {
  for (const auto& algorithm : device_->algorithms()) {
    for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
      for (const int64_t n : {3, 200, 1100}) ExpectFactors(*algorithm, n, dtype);
    }
  }
}

// The matrix has more rows than clusters of 2 and 8 blocks hold, and uses look-ahead.
TEST_P(LimitsTest, CroutLuFactorsLargerMatrices) {
  auto ours = FindAlgorithm(*device_, "crout_lu", DType::kFloat64, 1);
  ASSERT_TRUE(ours.ok()) << ours.status();
  for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
    const int64_t n = 5000;
    if ((*ours)->WorkspaceBytes(dtype, n, {}).ok()) ExpectFactors(**ours, n, dtype);
  }
}

TEST_P(LimitsTest, AutoChoosesAMethodThatSupportsTheMatrix) {
  for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
    for (const int64_t n : {10, 1000, 10000, 100000}) {
      auto chosen = FindAlgorithm(*device_, "auto", dtype, n);
      ASSERT_TRUE(chosen.ok());
      EXPECT_TRUE((*chosen)->WorkspaceBytes(dtype, n, {}).ok())
          << (*chosen)->traits().name << " n=" << n;
    }
  }
}

TEST_P(LimitsTest, OmitsMethodsThatDoNotFit) {
  EXPECT_EQ(FindAlgorithm(*device_, "icmpp", DType::kFloat64, 10).ok(), GetParam().searches);
  for (const char* name : {"getrf", "crout_lu", "pcm", "pcmpp", "block_lu", "icm"}) {
    EXPECT_TRUE(FindAlgorithm(*device_, name, DType::kFloat64, 10).ok()) << name;
  }
}

TEST_P(LimitsTest, FactorsSectionsLimitedBySharedMemory) {
  for (const char* name : {"icm", "icmpp"}) {
    auto found = FindAlgorithm(*device_, name, DType::kFloat64, 10);
    if (!found.ok()) continue;
    for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
      for (const int64_t section : {128, 1024}) ExpectFactors(**found, 1500, dtype, section);
    }
  }
}

TEST_P(LimitsTest, RefusesMatricesTooLargeForThePanels) {
  auto ours = FindAlgorithm(*device_, "pcmpp", DType::kFloat64, 10);
  ASSERT_TRUE(ours.ok());
  const auto refused = (*ours)->WorkspaceBytes(DType::kFloat64, int64_t{1} << 20, {});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnimplemented) << refused.status();
  EXPECT_EQ((*ours)->WorkspaceBytes(DType::kFloat64, 10000, {}).ok(),
            GetParam().limits.multiprocessors > 4);
}

INSTANTIATE_TEST_SUITE_P(Gpus, LimitsTest, ::testing::ValuesIn(kLesserGpus),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(DeviceLimitsTest, ComputesSizesThatFitIntoSharedMemory) {
  DeviceLimits limits;
  limits.shared_bytes = size_t{227} << 10;  // Hopper and Blackwell
  EXPECT_EQ(MaxInvertedOrder(DType::kFloat64, limits), kMaxInvertedOrder);
  EXPECT_EQ(MaxInvertedOrder(DType::kComplex128, limits), kMaxInvertedOrder);
  EXPECT_EQ(MaxSweptUnknowns(DType::kFloat64, limits), kIcmMaxSection);
  EXPECT_EQ(MaxSweptUnknowns(DType::kComplex64, limits), kIcmMaxSection);
  EXPECT_GE(MaxSweptUnknowns(DType::kComplex128, limits), kIcmMaxSection / 2);
  EXPECT_TRUE(IcmFits(DType::kFloat64, limits, true));
  EXPECT_TRUE(IcmFits(DType::kComplex128, limits, true));
  limits.shared_bytes = kShared80;
  EXPECT_LT(MaxInvertedOrder(DType::kFloat64, limits), kMaxInvertedOrder);
  EXPECT_GE(MaxInvertedOrder(DType::kFloat64, limits), 512);
  EXPECT_GE(MaxInvertedOrder(DType::kComplex128, limits), 512);
  EXPECT_EQ(MaxSweptUnknowns(DType::kFloat64, limits), kIcmMaxSection);
  limits.shared_bytes = kShared86;
  EXPECT_GE(MaxInvertedOrder(DType::kComplex128, limits), 256);
  EXPECT_LT(MaxSweptUnknowns(DType::kFloat64, limits), kIcmMaxSection);
  EXPECT_TRUE(IcmFits(DType::kFloat64, limits, true));
  EXPECT_TRUE(IcmFits(DType::kComplex128, limits, false) &&
              !IcmFits(DType::kComplex128, limits, true));
  limits.shared_bytes = kShared75;
  EXPECT_TRUE(IcmFits(DType::kFloat64, limits, false) && !IcmFits(DType::kFloat64, limits, true));
  limits.shared_bytes = size_t{48} << 10;
  EXPECT_GE(MaxInvertedOrder(DType::kComplex128, limits), 32);
}

}  // namespace
}  // namespace crout::cuda::limits_test
