// SPDX-License-Identifier: Apache-2.0

// Tests batches of systems from several callers. The result of a system must not depend on the
// others.
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/jobs/batch/dynamic_batch.h"
#include "kernels/memory.h"
#include "tests/support/matrices/gallery.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/device_under_test.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::dynamic_batch_test {
namespace {

// A caller's system in host memory. Not moved, because the job stores pointers to it.
struct Caller {
  DynamicBatchSystem system;
  std::vector<std::byte> a;
  std::vector<std::byte> b;
  std::vector<std::byte> x;
  HostMatrix matrix;
  HostMatrix rhs;

  HostMatrix X() const { return Unpacked<double>(x.data(), system.rhs); }
};
using Callers = std::vector<std::unique_ptr<Caller>>;

struct SystemSpec {
  int64_t n = 8;
  int64_t nrhs = 1;
  Layout layout = Layout::kColumnMajor;
  bool keep = false;
  bool verify = true;
};

class DynamicBatchJobsTest : public OnDeviceUnderTest<JobRunner> {
 protected:
  static std::unique_ptr<Caller> Make(const SystemSpec& spec, HostMatrix a, HostMatrix b,
                                      DType dtype = DType::kFloat64) {
    auto caller = std::make_unique<Caller>();
    caller->matrix = std::move(a);
    caller->rhs = std::move(b);
    DynamicBatchSystem& system = caller->system;
    system.shape = {.dtype = dtype,
                    .n = spec.n,
                    .factors = true,
                    .keeps_factor = spec.keep,
                    .keeps_matrix = spec.keep,
                    .nrhs = spec.nrhs};
    caller->a = Packed(caller->matrix, spec.n, spec.n, dtype, spec.layout);
    system.matrix = {caller->a.data(), dtype, spec.layout, spec.n, spec.n};
    AddRhs(*caller, spec);
    return caller;
  }
  static void AddRhs(Caller& caller, const SystemSpec& spec) {
    DynamicBatchSystem& system = caller.system;
    const DType dtype = system.shape.dtype;
    caller.b = Packed(caller.rhs, spec.n, spec.nrhs, dtype, spec.layout);
    caller.x.resize(caller.b.size());
    system.rhs = {caller.b.data(), dtype, spec.layout, spec.n, spec.nrhs};
    system.x = caller.x.data();
    system.verify = spec.verify;
    system.device_bytes = PlanDynamicBatch(Method(), system.shape)->device;
  }
  static std::unique_ptr<Caller> Random(const SystemSpec& spec, uint64_t seed,
                                        DType dtype = DType::kFloat64) {
    return Make(spec, RandomMatrix(spec.n, spec.n, seed),
                RandomMatrix(spec.n, spec.nrhs, seed + 1000), dtype);
  }
  // Returns a system that uses the cached factor of `kept`, which must have run before.
  static std::unique_ptr<Caller> With(const Caller& kept, const SystemSpec& spec, uint64_t seed) {
    auto caller = std::make_unique<Caller>();
    caller->matrix = kept.matrix;
    caller->rhs = RandomMatrix(spec.n, spec.nrhs, seed);
    caller->system.shape = {.dtype = kept.system.shape.dtype, .n = spec.n, .nrhs = spec.nrhs};
    caller->system.factor = &kept.system.made;
    AddRhs(*caller, spec);
    return caller;
  }

  static const BatchLu& Method() { return *DeviceUnderTest()->batch_lu(); }

  void Run(const Callers& callers, Op op = Op::kNone) {
    std::vector<DynamicBatchSystem*> systems;
    for (const auto& caller : callers) systems.push_back(&caller->system);
    RunDynamicBatch(runner_->context(), Method(), op, systems, DeviceUnderTest()->staging_memory(),
                    JobRunner::NeverStop(), timings_);
  }

  static double Error(const Caller& caller, Op op = Op::kNone) {
    return BackwardError(caller.matrix, caller.system.shape.n, op, caller.X(), caller.rhs,
                         caller.system.shape.nrhs);
  }

  DynamicBatchTimings timings_;
};

TEST_F(DynamicBatchJobsTest, GivesEachSystemTheSameBitsAsAlone) {
  const std::vector<SystemSpec> specs = {
      {.n = 5, .nrhs = 2},
      {.n = 64, .nrhs = 1, .layout = Layout::kRowMajor},
      {.n = 1, .nrhs = 3},
      {.n = 100, .nrhs = 0, .keep = true},
      {.n = 33, .nrhs = 4, .layout = Layout::kRowMajor, .keep = true},
      {.n = 40, .nrhs = 1, .verify = false}};
  for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
    Callers alone, together;
    for (size_t k = 0; k < specs.size(); ++k) {
      alone.push_back(Random(specs[k], k, dtype));
      together.push_back(Random(specs[k], k, dtype));
      Callers one;
      one.push_back(std::move(alone.back()));
      Run(one);
      alone.back() = std::move(one.back());
    }
    Run(together);
    for (size_t k = 0; k < specs.size(); ++k) {
      SCOPED_TRACE(k);
      const DynamicBatchSystem& a = alone[k]->system;
      const DynamicBatchSystem& b = together[k]->system;
      ASSERT_OK(a.status);
      ASSERT_OK(b.status);
      EXPECT_EQ(alone[k]->x, together[k]->x);
      EXPECT_EQ(a.solved.backward_error, b.solved.backward_error);
      EXPECT_EQ(b.solved.backward_error.has_value(), specs[k].verify && specs[k].nrhs > 0);
      EXPECT_EQ(a.made.summary.pivot_growth, b.made.summary.pivot_growth);
      EXPECT_EQ(a.made.summary.quality, b.made.summary.quality);
      EXPECT_EQ(b.made.summary.algorithm, "irr_lu");
      if (specs[k].nrhs > 0 && dtype == DType::kFloat64) {
        EXPECT_LT(Error(*together[k]), 1e-14);
      }
    }
  }
}

TEST_F(DynamicBatchJobsTest, ReturnsUsableFactorOnRequest) {
  Callers callers;
  callers.push_back(Random({.n = 7, .nrhs = 1}, 1));
  callers.push_back(Random({.n = 50, .nrhs = 0, .keep = true}, 2));
  Run(callers);
  const Caller& caller = *callers[1];
  ASSERT_OK(caller.system.status);
  const Factorization& made = caller.system.made;
  EXPECT_EQ(made.summary.n, 50);
  EXPECT_GT(made.summary.norm_one, 0);
  ASSERT_OK_AND_ASSIGN(const HostFactor host, runner_->Download(made));
  EXPECT_LT(FactorRatio(caller.matrix, 50, host.lu, host.ipiv, UnitDiagonal::kL, DType::kFloat64),
            kThreshold);
  const HostMatrix b = RandomMatrix(50, 3, 5);
  ASSERT_OK_AND_ASSIGN(const Solution solved, runner_->Solve(made, b, 3, {}));
  EXPECT_LT(*solved.summary.backward_error, 1e-14);
}

TEST_F(DynamicBatchJobsTest, CombinesCachedAndNewFactorsInOneBatch) {
  Callers kept;
  kept.push_back(Random({.n = 30, .nrhs = 0, .keep = true}, 1));
  kept.push_back(Random({.n = 12, .nrhs = 0, .keep = true}, 2));
  Run(kept);
  for (const Op op : {Op::kNone, Op::kTranspose}) {
    Callers callers;
    callers.push_back(With(*kept[0], {.n = 30, .nrhs = 2}, 3));
    callers.push_back(Random({.n = 20, .nrhs = 1}, 4));
    callers.push_back(With(*kept[1], {.n = 12, .nrhs = 1, .layout = Layout::kRowMajor}, 5));
    callers.push_back(With(*kept[0], {.n = 30, .nrhs = 1}, 6));
    Run(callers, op);
    for (const auto& caller : callers) {
      ASSERT_OK(caller->system.status);
      EXPECT_LT(Error(*caller, op), 1e-14);
      EXPECT_NEAR(*caller->system.solved.backward_error, Error(*caller, op), 1e-15);
    }
    // A batch with only cached factors needs no factorization.
    Callers alone;
    alone.push_back(With(*kept[0], {.n = 30, .nrhs = 2}, 3));
    Run(alone, op);
    EXPECT_EQ(alone[0]->x, callers[0]->x);
  }
}

TEST_F(DynamicBatchJobsTest, ReportsErrorsOnlyToTheirCallers) {
  Callers callers;
  callers.push_back(Random({.n = 9, .nrhs = 1}, 1));
  callers.push_back(Random({.n = 9, .nrhs = 1}, 2));
  callers.push_back(Random({.n = 9, .nrhs = 1}, 3));
  callers.push_back(Make({.n = 2, .nrhs = 1}, {1, 2, 2, 4}, {1, 1}));
  callers.push_back(Random({.n = 9, .nrhs = 1}, 4));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::memcpy(callers[1]->a.data() + 11 * sizeof(double), &nan, sizeof(nan));
  std::memcpy(callers[2]->b.data() + 4 * sizeof(double), &nan, sizeof(nan));
  Run(callers);
  ASSERT_OK(callers[0]->system.status);
  ASSERT_OK(callers[4]->system.status);
  EXPECT_LT(Error(*callers[0]), 1e-14);
  EXPECT_LT(Error(*callers[4]), 1e-14);
  EXPECT_EQ(callers[1]->system.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(callers[2]->system.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(callers[2]->system.status.message().find("right-hand side"), std::string::npos);
  const DynamicBatchSystem& singular = callers[3]->system;
  ASSERT_OK(singular.status);
  EXPECT_EQ(singular.made.summary.info, 2);
  EXPECT_EQ(singular.made.summary.singular, SingularReason::kZeroPivot);
  EXPECT_EQ(singular.solved.solver, "");
}

TEST_F(DynamicBatchJobsTest, ReportsSystemsThatNeedScalingWithoutSolvingThem) {
  const HostMatrix badly_scaled = {1e-12, 2e3, 2e-12, 1e3};
  Callers callers;
  callers.push_back(Make({.n = 2, .nrhs = 1}, badly_scaled, {1, 1}));
  callers.push_back(Make({.n = 2, .nrhs = 1}, badly_scaled, {1, 1}));
  callers.back()->system.may_require_scaling = false;
  Run(callers);
  EXPECT_TRUE(callers[0]->system.needs_scaling);
  EXPECT_EQ(callers[0]->system.solved.solver, "");
  EXPECT_FALSE(callers[1]->system.needs_scaling);
  EXPECT_LT(Error(*callers[1]), 1e-14);
}

TEST_F(DynamicBatchJobsTest, SolvesWithoutReservedDeviceMemory) {
  Callers whole, cut;
  for (uint64_t k = 0; k < 9; ++k) {
    whole.push_back(Random({.n = 20, .nrhs = 1}, k));
    cut.push_back(Random({.n = 20, .nrhs = 1}, k));
    cut.back()->system.device_bytes = 0;
  }
  Run(whole);
  Run(cut);
  for (size_t k = 0; k < whole.size(); ++k) {
    ASSERT_OK(cut[k]->system.status);
    EXPECT_EQ(whole[k]->x, cut[k]->x);
  }
}

TEST_F(DynamicBatchJobsTest, StopsAllSystems) {
  Callers callers;
  callers.push_back(Random({.n = 9, .nrhs = 1}, 1));
  callers.push_back(Random({.n = 9, .nrhs = 1, .keep = true}, 2));
  std::vector<DynamicBatchSystem*> systems;
  for (const auto& caller : callers) systems.push_back(&caller->system);
  RunDynamicBatch(
      runner_->context(), Method(), Op::kNone, systems, DeviceUnderTest()->staging_memory(),
      [] { return true; }, timings_);
  for (const auto* system : systems) {
    EXPECT_EQ(system->status.code(), absl::StatusCode::kCancelled);
    EXPECT_EQ(system->made.parts.bytes(), 0);
  }
}

}  // namespace
}  // namespace crout::testing::dynamic_batch_test
