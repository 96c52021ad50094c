// SPDX-License-Identifier: Apache-2.0

// Tests the engine without a transport: factors, solves, evicts and runs a series. Links neither
// gRPC nor protobuf.
#include "server/engine/engine.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/host/device/executor.h"
#include "kernels/host/methods.h"
#include "kernels/jobs/batch/batch_factorize.h"
#include "kernels/sparse_view.h"
#include "kernels/util/status_macros.h"
#include "server/engine/batching/dynamic_batcher.h"
#include "server/engine/error.h"
#include "server/engine/plan/factor_plan.h"
#include "server/engine/plan/solve_step.h"
#include "server/engine/plan/step_group.h"
#include "server/engine/series/series.h"
#include "tests/support/fakes/fake_device.h"
#include "tests/support/matrices/gallery.h"
#include "tests/support/ratios.h"
#include "tests/support/status_matchers.h"

namespace crout::engine_test {
namespace {

using testing::FakeDevice;
using testing::FakeDeviceOptions;
using testing::HostMatrix;
using testing::RandomMatrix;

constexpr char kTenant[] = "tenant";
constexpr int64_t kN = 40;
constexpr int64_t kNrhs = 2;
constexpr auto kNever = [] { return false; };

// Counts the events of jobs and ignores those of the cache.
class CountingEvents final : public JobEvents, public CacheEvents {
 public:
  void OnFactor(const DeviceSlot&, const FactorSummary&, double) override { ++factors; }
  void OnSolve(const DeviceSlot&, const SolveSummary&, const FactorSummary&, double) override {
    ++solves;
  }
  void OnBackwardError(DType, double) override {}
  void OnDynamicBatch(const DeviceSlot&, size_t, double) override {}
  void OnBatchFactor(const DeviceSlot&, int64_t, int64_t) override {}
  void OnBatchSolve(const DeviceSlot&, int64_t) override {}
  void OnHit(Tier) noexcept override {}
  void OnMiss(CacheMiss) noexcept override {}
  void OnEviction(Tier, CacheEviction) noexcept override {}
  void OnPromotion(double) noexcept override {}
  void OnDeviceCopy(double) noexcept override {}

  std::atomic<int> factors = 0;
  std::atomic<int> solves = 0;
};

// Runs `work` on a worker of the scheduler.
class WorkJob final : public Job {
 public:
  explicit WorkJob(std::function<void(ExecutionContext&)> work) : work_(std::move(work)) {}
  void Run(ExecutionContext& context) override {
    work_(context);
    done_.release();
  }
  void Drop(absl::Status status) override {
    dropped_ = std::move(status);
    done_.release();
  }
  absl::Status Wait() {
    done_.acquire();
    return dropped_;
  }

 private:
  const std::function<void(ExecutionContext&)> work_;
  absl::Status dropped_;
  std::binary_semaphore done_{0};
};

class EngineTest : public ::testing::Test {
 protected:
  void Start(size_t device_bytes) {
    FakeDeviceOptions options;
    options.has_sparse_ops = true;
    options.register_more = [this](Catalogue& catalogue) {
      catalogue.sparse_lus.push_back(host::MakeMultifrontal(executor_));
      catalogue.batch_lu = host::MakeIrrLu(executor_);
    };
    std::vector<std::shared_ptr<Device>> devices;
    devices.push_back(std::make_unique<FakeDevice>(options));
    DevicePoolOptions pool;
    pool.device_budget_bytes = device_bytes;
    pool.host_budget_bytes = size_t{64} << 20;
    auto created = DevicePool::Create(std::move(devices), pool);
    ASSERT_OK(created);
    devices_ = *std::move(created);
    cache_.emplace(devices_.get(), &host_memory_, &events_, &loads_, &quotas_,
                   /*max_pinned_bytes=*/0);
    batcher_.emplace(events_, host_memory_);
    engine_.reset(new Engine{.limits = {.batching_max_order = 0},
                             .devices = *devices_,
                             .cache = *cache_,
                             .analyses = analyses_,
                             .tenant_loads = loads_,
                             .quotas = quotas_,
                             .events = events_,
                             .batcher = *batcher_,
                             .host_memory = host_memory_,
                             .parsers = parsers_});
  }
  void TearDown() override {
    if (devices_ != nullptr) devices_->Stop();
  }

  static MatrixSpec Dense(int64_t rows, int64_t cols) {
    MatrixSpec spec;
    spec.shape = {nullptr, DType::kFloat64, Layout::kColumnMajor, rows, cols};
    return spec;
  }
  static std::string Bytes(const HostMatrix& a) {
    return {reinterpret_cast<const char*>(a.data()), a.size() * sizeof(double)};
  }
  static std::string Raw(const std::vector<int64_t>& numbers) {
    return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(int64_t)};
  }
  static std::string CoordinateText(const HostMatrix& a, int64_t n) {
    std::string text;
    int64_t entries = 0;
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < n; ++i) {
        if (a[i + j * n] == 0) continue;
        ++entries;
        absl::StrAppend(&text, i + 1, " ", j + 1, " ", a[i + j * n], "\n");
      }
    }
    return absl::StrCat("%%MatrixMarket matrix coordinate real general\n", n, " ", n, " ", entries,
                        "\n", text);
  }

  // Does what a transport does with a job: reserves the memory of its steps, sends the payloads and
  // runs it on a worker.
  template <class Result>
  absl::StatusOr<Result> RunJob(JobPlan<Result>& plan, const std::vector<std::string>& payloads) {
    StepGroup steps(plan.steps(), kTenant);
    CROUT_ASSIGN_OR_RETURN(const MemoryNeed need, steps.PlanDense());
    CROUT_ASSIGN_OR_RETURN(JobMemory memory, Reserve(*engine_, steps.slot(), need, kTenant));
    CROUT_RETURN_IF_ERROR(steps.AdmitDense(std::move(memory)));
    for (size_t i = 0; i < steps.size(); ++i) {
      CROUT_RETURN_IF_ERROR(Send(steps[i].upload(), payloads[i]));
    }
    if (steps.any_parsed()) {
      CROUT_RETURN_IF_ERROR(steps.Analyze(*engine_, kNever, [](PayloadStep&) { return false; }));
      CROUT_RETURN_IF_ERROR(steps.Assemble(*engine_, kNever));
    }
    absl::StatusOr<Result> result = absl::UnknownError("the job did not run");
    const auto job = std::make_shared<WorkJob>([&](ExecutionContext& context) {
      result = plan.Run(context, {kNever, kNever}, timings_);
    });
    CROUT_RETURN_IF_ERROR(steps.slot().scheduler->Submit(job));
    CROUT_RETURN_IF_ERROR(job->Wait());
    return result;
  }

  absl::StatusOr<FactorInfo> Factor(const MatrixSpec& spec, const std::string& payload,
                                    const FactorRequest& request = {}) {
    CROUT_ASSIGN_OR_RETURN(const auto plan, PlanFactor(*engine_, spec, request, kTenant));
    CROUT_ASSIGN_OR_RETURN(FactorResult result, RunJob(*plan, {payload}));
    return cache_->Insert(std::move(result.factor), Options());
  }

  absl::StatusOr<HostMatrix> Solve(const Handle& handle, const HostMatrix& b, int64_t n) {
    CROUT_ASSIGN_OR_RETURN(FactorCache::Pin pin, cache_->Acquire(kTenant, handle));
    CROUT_ASSIGN_OR_RETURN(const auto plan,
                           PlanCachedSolve(*engine_, std::move(pin), Dense(n, kNrhs), {}));
    CROUT_ASSIGN_OR_RETURN(const CachedSolution solution, RunJob(*plan, {Bytes(b)}));
    return Copy(*solution.x, n * kNrhs);
  }

  static InsertOptions Options() {
    InsertOptions options;
    options.tenant = kTenant;
    options.lease = absl::Hours(1);
    return options;
  }
  static HostMatrix Copy(const ReplyData& data, int64_t elements) {
    const auto* const values = reinterpret_cast<const double*>(data.bytes.data());
    return HostMatrix(values, values + elements);
  }

  host::Executor executor_{2};  // for the sparse method; outlives the devices
  testing::CountingResource host_memory_{size_t{64} << 20};
  CountingEvents events_;
  TenantLoads loads_;
  Quotas quotas_;
  AnalysisStore analyses_;
  ThreadPool parsers_{1};
  std::unique_ptr<DevicePool> devices_;
  std::optional<FactorCache> cache_;
  std::optional<DynamicBatcher> batcher_;
  std::unique_ptr<Engine> engine_;
  CallTimings timings_;

 private:
  static absl::Status Send(MatrixUpload& upload, const std::string& payload) {
    std::span<const std::byte> rest(reinterpret_cast<const std::byte*>(payload.data()),
                                    payload.size());
    if (!upload.TryReserve(rest.size())) CROUT_RETURN_IF_ERROR(upload.Reserve(rest.size()));
    while (!rest.empty()) {
      std::binary_semaphore ready(0);
      CROUT_ASSIGN_OR_RETURN(const size_t taken, upload.Append(rest, [&] { ready.release(); }));
      rest = rest.subspan(taken);
      if (!rest.empty()) ready.acquire();
    }
    CROUT_RETURN_IF_ERROR(upload.Pause());
    return upload.Close();
  }
};

TEST_F(EngineTest, FactorsAndSolves) {
  Start(size_t{16} << 20);
  const HostMatrix a = RandomMatrix(kN, kN, 1);
  ASSERT_OK_AND_ASSIGN(const FactorInfo factor, Factor(Dense(kN, kN), Bytes(a)));
  EXPECT_EQ(factor.summary.n, kN);
  EXPECT_EQ(factor.summary.kind(), FactorKind::kDense);
  const HostMatrix b = RandomMatrix(kN, kNrhs, 2);
  ASSERT_OK_AND_ASSIGN(const HostMatrix x, Solve(factor.handle, b, kN));
  EXPECT_LT(testing::BackwardError(a, kN, Op::kNone, x, b, kNrhs), 1e-14);
  EXPECT_EQ(events_.factors, 1);
  EXPECT_EQ(events_.solves, 1);
}

TEST_F(EngineTest, FactorsInSinglePrecisionAndCorrectsSolves) {
  Start(size_t{16} << 20);
  FactorRequest request;
  request.precision = RequestedPrecision::kSingle;
  const HostMatrix a = RandomMatrix(kN, kN, 1);
  ASSERT_OK_AND_ASSIGN(const FactorInfo factor, Factor(Dense(kN, kN), Bytes(a), request));
  EXPECT_EQ(factor.summary.precision, FactorPrecision::kSingle);
  EXPECT_EQ(factor.summary.factor_dtype, DType::kFloat32);
  EXPECT_EQ(factor.summary.kind(), FactorKind::kDense);
  const HostMatrix b = RandomMatrix(kN, kNrhs, 2);
  ASSERT_OK_AND_ASSIGN(const HostMatrix x, Solve(factor.handle, b, kN));
  EXPECT_LT(testing::BackwardError(a, kN, Op::kNone, x, b, kNrhs), 1e-14);
}

TEST_F(EngineTest, FactorsSparseTextAsSparse) {
  Start(size_t{256} << 20);
  constexpr int64_t kOrder = 400;
  HostMatrix a(kOrder * kOrder);
  for (int64_t i = 0; i < kOrder; ++i) {
    a[i + i * kOrder] = 4;
    if (i > 0) a[i + (i - 1) * kOrder] = a[i - 1 + i * kOrder] = -1;
  }
  MatrixSpec text;
  text.text = true;
  FactorRequest request;
  request.algorithm = "multifrontal";
  ASSERT_OK_AND_ASSIGN(const FactorInfo factor, Factor(text, CoordinateText(a, kOrder), request));
  EXPECT_EQ(factor.summary.kind(), FactorKind::kSparse);
  const HostMatrix b = RandomMatrix(kOrder, kNrhs, 2);
  ASSERT_OK_AND_ASSIGN(const HostMatrix x, Solve(factor.handle, b, kOrder));
  EXPECT_LT(testing::BackwardError(a, kOrder, Op::kNone, x, b, kNrhs), 1e-14);
}

// A batch and its right-hand sides: two int64 for each, then the values at multiples of 16 bytes.
TEST_F(EngineTest, FactorsAndSolvesABatch) {
  Start(size_t{16} << 20);
  const std::vector<int64_t> sizes = {kN, kN, 2, 2};
  const HostMatrix a = RandomMatrix(kN, kN, 1);
  const std::string values = Bytes(a) + Bytes({4, 1, 1, 3});
  MatrixSpec batch;
  batch.batch = BatchExtent{.members = 2,
                            .max_rows = kN,
                            .max_cols = kN,
                            .total_rows = kN + 2,
                            .total_cols = kN + 2,
                            .bytes = values.size()};
  ASSERT_OK_AND_ASSIGN(const auto plan, PlanFactor(*engine_, batch, {}, kTenant));
  ASSERT_OK_AND_ASSIGN(FactorResult made, RunJob(*plan, {Raw(sizes) + values}));
  ASSERT_NE(made.figures, nullptr);
  EXPECT_EQ(made.figures->bytes.size(), 2 * BatchFigures::kSentBytesPerMember);
  ASSERT_OK_AND_ASSIGN(const FactorInfo factor, cache_->Insert(std::move(made.factor), Options()));
  EXPECT_EQ(factor.summary.kind(), FactorKind::kBatch);
  EXPECT_EQ(factor.summary.batch->extent.members, 2);

  MatrixSpec rhs;
  rhs.shape.dtype = DType::kFloat64;
  rhs.batch_rhs = {1, 2 * sizeof(double)};
  ASSERT_OK_AND_ASSIGN(FactorCache::Pin pin, cache_->Acquire(kTenant, factor.handle));
  ASSERT_OK_AND_ASSIGN(const auto solve, PlanCachedSolve(*engine_, std::move(pin), rhs, {}));
  ASSERT_OK_AND_ASSIGN(const CachedSolution solution,
                       RunJob(*solve, {Raw(std::vector<int64_t>{1, 1}) + Bytes({6, 7})}));
  EXPECT_THAT(Copy(*solution.x, 2), ::testing::ElementsAre(::testing::DoubleNear(1, 1e-15),
                                                           ::testing::DoubleNear(2, 1e-15)));
  EXPECT_EQ(solution.factor_version, 1);

  MatrixSpec single = Dense(kN, kNrhs);
  ASSERT_OK_AND_ASSIGN(pin, cache_->Acquire(kTenant, factor.handle));
  EXPECT_EQ(PlanCachedSolve(*engine_, std::move(pin), single, {}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(EngineTest, RefusesAnOptionByItsField) {
  Start(size_t{16} << 20);
  FactorRequest request;
  request.pivot_threshold = 2;
  request.algorithm = "multifrontal";
  MatrixSpec text;
  text.text = true;
  const auto plan = PlanFactor(*engine_, text, request, kTenant);
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(FieldOf(plan.status()), ::testing::Optional(::testing::HasSubstr("pivot_threshold")));
}

// One factor fits in the budget. The second factor moves the first to host memory, and a solve
// promotes it again.
TEST_F(EngineTest, MovesFactorsBetweenTheTiers) {
  Start(/*device_bytes=*/8 * kN * kN * sizeof(double));
  const HostMatrix a = RandomMatrix(kN, kN, 1);
  std::vector<Handle> handles;
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK_AND_ASSIGN(const FactorInfo factor, Factor(Dense(kN, kN), Bytes(a)));
    handles.push_back(factor.handle);
  }
  ASSERT_OK_AND_ASSIGN(const FactorInfo first, cache_->Describe(kTenant, handles.front()));
  EXPECT_EQ(first.tier, Tier::kHost);
  const HostMatrix b = RandomMatrix(kN, kNrhs, 2);
  ASSERT_OK_AND_ASSIGN(const HostMatrix x, Solve(handles.front(), b, kN));
  EXPECT_LT(testing::BackwardError(a, kN, Op::kNone, x, b, kNrhs), 1e-14);
  ASSERT_OK_AND_ASSIGN(const FactorInfo promoted, cache_->Describe(kTenant, handles.front()));
  EXPECT_EQ(promoted.tier, Tier::kDevice);
}

TEST_F(EngineTest, RunsASeries) {
  Start(size_t{16} << 20);
  SeriesRequest request;
  request.accuracy = 1e-12;
  request.strategy = SeriesStrategy::kReuse;
  std::optional<Series> series;
  series.emplace(*engine_, request, Options(), absl::Hours(1), std::nullopt);
  HostMatrix a = RandomMatrix(kN, kN, 1);
  const HostMatrix b = RandomMatrix(kN, kNrhs, 2);
  for (int step = 0; step < 3; ++step) {
    a[step] += 1e-6;
    SeriesStepRequest next;
    next.matrix = Dense(kN, kN);
    next.rhs = Dense(kN, kNrhs);
    ASSERT_OK_AND_ASSIGN(const auto steps, series->BeginStep(next));
    ASSERT_OK_AND_ASSIGN(SeriesAnswer answer, RunJob<SeriesAnswer>(*steps, {Bytes(a), Bytes(b)}));
    EXPECT_TRUE(answer.summary.solved);
    EXPECT_LT(testing::BackwardError(a, kN, Op::kNone, Copy(*answer.x, kN * kNrhs), b, kNrhs),
              1e-11);
    ASSERT_OK_AND_ASSIGN(const std::optional<FactorInfo> made, series->Store(answer));
    EXPECT_EQ(made.has_value(), step == 0);
    EXPECT_EQ(series->age(), step);
    series->EndStep();
  }
  EXPECT_EQ(events_.factors, 1);
  EXPECT_GT(cache_->size(), 1u) << "entries for the next step";
  series.reset();
  EXPECT_EQ(cache_->size(), 1u) << "the factor";
}

}  // namespace
}  // namespace crout::engine_test
