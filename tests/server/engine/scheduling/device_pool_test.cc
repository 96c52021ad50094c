// SPDX-License-Identifier: Apache-2.0

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/host/device/host_device.h"
#include "kernels/host/device/host_info.h"
#include "kernels/host/device/out_of_core_device.h"
#include "server/engine/error.h"
#include "server/engine/scheduling/device_pool.h"
#include "tests/server/event.h"
#include "tests/support/fakes/fake_device.h"
#include "tests/support/status_matchers.h"

namespace crout::device_pool_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;

constexpr size_t kMemoryBytes = 1 << 20;
constexpr size_t kOutOfCoreBytes = 8192;

class Blocker final : public Job {
 public:
  Blocker(Event* started, Event* release) : started_(started), release_(release) {}
  void Run(ExecutionContext&) override {
    started_->Set();
    release_->Wait();
  }
  void Drop(absl::Status) override {}

 private:
  Event* const started_;
  Event* const release_;
};

class DevicePoolTest : public ::testing::Test {
 protected:
  ~DevicePoolTest() override { release_.Set(); }

  testing::FakeDevice* Add(DeviceKind kind, const std::string& name, int ranks = 0) {
    auto device = std::make_unique<testing::FakeDevice>(testing::FakeDeviceOptions{
        .kind = kind, .name = name, .memory_bytes = kMemoryBytes, .ranks = ranks});
    testing::FakeDevice* view = device.get();
    devices_.push_back(std::move(device));
    return view;
  }
  // Adds the out-of-core device of the first device.
  void AddOutOfCore() {
    auto device =
        host::MakeOutOfCoreDevice(devices_.front(), kOutOfCoreBytes, host::MakeExecutor(1));
    ASSERT_OK(device);
    devices_.push_back(*std::move(device));
  }
  void Create(DevicePoolOptions options = {}) {
    options.scheduler.streams = 1;
    auto pool = DevicePool::Create(std::move(devices_), options);
    ASSERT_TRUE(pool.ok());
    pool_ = *std::move(pool);
  }
  void Occupy(DeviceSlot& slot) {
    Event started;
    auto job = std::make_shared<Blocker>(&started, &release_);
    job->predicted_seconds = 1000;
    ASSERT_TRUE(slot.scheduler->Submit(job).ok());
    started.Wait();
  }
  std::string Chosen(std::string_view name) {
    auto slot = pool_->Choose(name);
    return slot.ok() ? (*slot)->device->info().name : slot.status().ToString();
  }

  Event release_;
  std::vector<std::shared_ptr<Device>> devices_;
  std::unique_ptr<DevicePool> pool_;
};

TEST_F(DevicePoolTest, GivesEachDeviceItsBudgetAndTheHostTheSharedOne) {
  Add(DeviceKind::kCuda, "cuda:0");
  Add(DeviceKind::kHost, "host");
  Create({.scheduler = {}, .memory_fraction = 0.5, .host_budget_bytes = 4096});
  ASSERT_EQ(pool_->slots().size(), 2u);
  EXPECT_EQ(pool_->slots()[0]->budget->limit(), kMemoryBytes / 2);
  EXPECT_EQ(pool_->slots()[0]->index, 0);
  EXPECT_EQ(pool_->slots()[1]->budget, &pool_->host_budget());
  EXPECT_EQ(pool_->slots()[1]->index, 1);
  EXPECT_EQ(pool_->host_budget().limit(), 4096u);
}

TEST_F(DevicePoolTest, TakesExplicitAndDefaultBudgets) {
  Add(DeviceKind::kCuda, "cuda:0");
  Create({.scheduler = {}, .device_budget_bytes = 12345});
  EXPECT_EQ(pool_->slots()[0]->budget->limit(), 12345u);
  EXPECT_EQ(pool_->host_budget().limit(), host::SystemMemoryBytes() / 2)
      << "control groups included";
}

TEST_F(DevicePoolTest, ChoosesByNameOrLeastLoad) {
  Add(DeviceKind::kHost, "host");
  Add(DeviceKind::kCuda, "cuda:0");
  Add(DeviceKind::kCuda, "cuda:1");
  Create();
  EXPECT_EQ(Chosen("host"), "host");
  EXPECT_EQ(Chosen("cuda:1"), "cuda:1");
  EXPECT_EQ(Chosen(""), "cuda:0") << "a GPU before the host";
  EXPECT_EQ(Chosen(""), "cuda:1") << "and equals in turn";
  Occupy(*pool_->slots()[1]);
  EXPECT_EQ(Chosen(""), "cuda:1");
  Occupy(*pool_->slots()[2]);
  EXPECT_EQ(Chosen(""), "host");
}

// Each chosen device gets a job that remains in the upload phase.
TEST_F(DevicePoolTest, UploadsInFlightCountAndAFasterDeviceGetsMore) {
  Add(DeviceKind::kCuda, "fast");
  Add(DeviceKind::kCuda, "slow");
  Create();
  const auto demand = [](DeviceSlot& slot) -> absl::StatusOr<JobDemand> {
    return JobDemand{.seconds = slot.index == 0 ? 1.0 : 2.0};
  };
  std::deque<ExpectedJobs::Job> jobs;
  std::vector<int> chosen = {0, 0};
  for (int i = 0; i < 30; ++i) {
    auto slot = pool_->Choose("", demand);
    ASSERT_TRUE(slot.ok());
    ++chosen[(*slot)->index];
    jobs.emplace_back((*slot)->expected, demand(**slot)->seconds, 0);
  }
  EXPECT_THAT(chosen, ElementsAre(20, 10));
}

TEST_F(DevicePoolTest, QueuedWorkCounts) {
  Add(DeviceKind::kCuda, "cuda:0");
  Add(DeviceKind::kCuda, "cuda:1");
  Create();
  Occupy(*pool_->slots()[0]);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Chosen(""), "cuda:1");
}

TEST_F(DevicePoolTest, PrefersFreeMemoryToEvictions) {
  Add(DeviceKind::kCuda, "cuda:0");
  Add(DeviceKind::kCuda, "cuda:1");
  Create({.scheduler = {}, .device_budget_bytes = 1000});
  DeviceSlot& first = *pool_->slots()[0];
  DeviceSlot& second = *pool_->slots()[1];
  const auto chosen_for = [&](size_t bytes) {
    const auto slot = pool_->Choose(
        "", [&](DeviceSlot&) -> absl::StatusOr<JobDemand> { return JobDemand{.bytes = bytes}; });
    return (*slot)->device->info().name;
  };
  std::optional<Reservation> taken = first.budget->TryReserve(600);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(chosen_for(500), "cuda:1") << "the first has no room";
  {
    const ExpectedJobs::Job coming(second.expected, /*seconds=*/1, 700);
    EXPECT_EQ(chosen_for(400), "cuda:0") << "that room is spoken for";
  }
  first.idle_bytes = 600;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(chosen_for(500), "cuda:1") << "nothing to evict there";
  const ExpectedJobs::Job coming(second.expected, /*seconds=*/1, 0);
  EXPECT_EQ(chosen_for(500), "cuda:0") << "evicting is quicker than waiting";
  EXPECT_EQ(chosen_for(2000), "cuda:0") << "none has room: the least loaded";
}

TEST_F(DevicePoolTest, ChoosesAGroupForJobsThatFitNowhereElse) {
  Add(DeviceKind::kHost, "group:big", /*ranks=*/4);
  Add(DeviceKind::kCuda, "cuda:0");
  Create({.scheduler = {}, .device_budget_bytes = 1000, .host_budget_bytes = 5000});
  const auto chosen_for = [&](size_t bytes) {
    const auto slot = pool_->Choose(
        "", [&](DeviceSlot&) -> absl::StatusOr<JobDemand> { return JobDemand{.bytes = bytes}; });
    return (*slot)->device->info().name;
  };
  Occupy(*pool_->slots()[1]);
  EXPECT_EQ(chosen_for(500), "cuda:0") << "although it is busy";
  EXPECT_EQ(chosen_for(2000), "group:big");
  EXPECT_EQ(chosen_for(6000), "cuda:0") << "none has room";
  EXPECT_EQ(Chosen("group:big"), "group:big");
}

TEST_F(DevicePoolTest, ChoosesAnOutOfCoreDeviceForJobsThatItsGpuCannotHold) {
  Add(DeviceKind::kCuda, "cuda:0");
  Add(DeviceKind::kHost, "host");
  AddOutOfCore();
  Create({.scheduler = {},
          .device_budget_bytes = kOutOfCoreBytes + 1000,
          .host_budget_bytes = 5000,
          .out_of_core_bytes = kOutOfCoreBytes});
  EXPECT_EQ(pool_->slots()[0]->budget->limit(), 1000U);
  double host_seconds = 2;
  const auto chosen_for = [&](size_t bytes) {
    const auto slot = pool_->Choose("", [&](DeviceSlot& slot) -> absl::StatusOr<JobDemand> {
      return JobDemand{.seconds = slot.index == 1 ? host_seconds : 1.0, .bytes = bytes};
    });
    return (*slot)->device->info().name;
  };
  EXPECT_EQ(chosen_for(1000), "cuda:0");
  EXPECT_EQ(chosen_for(1001), "cuda:0+host") << "faster than the host";
  EXPECT_EQ(chosen_for(5001), "cuda:0") << "none has room";
  EXPECT_EQ(Chosen("cuda:0+host"), "cuda:0+host");
  host_seconds = 0.5;
  EXPECT_EQ(chosen_for(1001), "host");
}

TEST_F(DevicePoolTest, ChoosesBetweenAGroupAndAnOutOfCoreDeviceByTime) {
  Add(DeviceKind::kCuda, "cuda:0");
  Add(DeviceKind::kHost, "group:big", /*ranks=*/4);
  AddOutOfCore();
  Create({.scheduler = {}, .device_budget_bytes = 1000, .host_budget_bytes = 5000});
  const auto chosen_for = [&](size_t bytes, double group_seconds) {
    const auto slot = pool_->Choose("", [&](DeviceSlot& slot) -> absl::StatusOr<JobDemand> {
      return JobDemand{.seconds = slot.is_group() ? group_seconds : 1.0, .bytes = bytes};
    });
    return (*slot)->device->info().name;
  };
  EXPECT_EQ(chosen_for(2000, 2.0), "cuda:0+host");
  EXPECT_EQ(chosen_for(2000, 0.5), "group:big");
  EXPECT_EQ(chosen_for(1000, 0.5), "cuda:0") << "which has the memory";
}

TEST_F(DevicePoolTest, AnOutOfCoreDeviceIsLostWithItsGpu) {
  testing::FakeDevice* const gpu = Add(DeviceKind::kCuda, "cuda:0");
  AddOutOfCore();
  Create();
  gpu->BreakDown();
  EXPECT_FALSE(pool_->slots()[1]->device->healthy());
  EXPECT_FALSE(pool_->any_healthy());
  EXPECT_THAT(Chosen("cuda:0+host"), HasSubstr("device cuda:0+host was lost"));
}

TEST_F(DevicePoolTest, RefusesOutOfCoreMemoryOfAWholeBudget) {
  Add(DeviceKind::kCuda, "cuda:0");
  const absl::Status status =
      DevicePool::Create(std::move(devices_),
                         {.scheduler = {}, .device_budget_bytes = 4096, .out_of_core_bytes = 1000})
          .status();  // which takes a block of 4096 bytes
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--out-of-core-memory=1000"));
}

TEST_F(DevicePoolTest, SkipsDevicesThatLackTheMethod) {
  Add(DeviceKind::kCuda, "cuda:0");
  Add(DeviceKind::kCuda, "cuda:1");
  Create();
  const auto only_second = [](DeviceSlot& slot) -> absl::StatusOr<JobDemand> {
    if (slot.index == 0) return absl::UnimplementedError("not here");
    return JobDemand{.seconds = 1000};
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ((*pool_->Choose("", only_second))->index, 1);
  const auto nowhere = [](DeviceSlot&) -> absl::StatusOr<JobDemand> {
    return absl::UnimplementedError("nowhere");
  };
  EXPECT_EQ(pool_->Choose("", nowhere).status().message(), "nowhere");
}

TEST_F(DevicePoolTest, ARefusalNamesTheDevices) {
  Add(DeviceKind::kHost, "host");
  Add(DeviceKind::kCuda, "cuda:0");
  Create();
  const absl::Status status = pool_->Choose("cuda:7").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("host, cuda:0"));
}

TEST_F(DevicePoolTest, SkipsFencedDevices) {
  testing::FakeDevice* first = Add(DeviceKind::kCuda, "cuda:0");
  testing::FakeDevice* second = Add(DeviceKind::kCuda, "cuda:1");
  Create();
  first->BreakDown();
  EXPECT_EQ(Chosen(""), "cuda:1");
  EXPECT_TRUE(pool_->any_healthy());
  const absl::Status fenced = pool_->Choose("cuda:0").status();
  EXPECT_EQ(fenced.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(ReasonOf(fenced), Optional(std::string(kReasonDeviceLost)));
  second->BreakDown();
  EXPECT_FALSE(pool_->any_healthy());
  EXPECT_EQ(pool_->Choose("").status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(DevicePoolTest, RequiresADeviceAndItsContexts) {
  EXPECT_EQ(DevicePool::Create({}, {}).status().code(), absl::StatusCode::kInvalidArgument);
  Add(DeviceKind::kCuda, "cuda:0")->BreakDown();
  EXPECT_EQ(DevicePool::Create(std::move(devices_), {}).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(DevicePoolTest, StopStopsEveryScheduler) {
  Add(DeviceKind::kCuda, "cuda:0");
  Add(DeviceKind::kHost, "host");
  Create();
  pool_->Stop();
  Event started;
  const auto job = std::make_shared<Blocker>(&started, &release_);
  for (const auto& slot : pool_->slots()) {
    EXPECT_EQ(slot->scheduler->Submit(job).code(), absl::StatusCode::kUnavailable);
  }
}

}  // namespace
}  // namespace crout::device_pool_test
