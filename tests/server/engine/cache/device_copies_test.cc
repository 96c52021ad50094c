// SPDX-License-Identifier: Apache-2.0

// Tests copies of hot factors on idle devices.
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/engine/error.h"
#include "tests/server/engine/cache/cache_fixture.h"
#include "tests/server/event.h"
#include "tests/support/status_matchers.h"
#include "tests/support/timing/eventually.h"

namespace crout::device_copies_test {
namespace {

// Runs until it is released. Its prediction exceeds the cost of every copy.
class LongJob final : public Job {
 public:
  explicit LongJob(Event* release) : release_(release) { predicted_seconds = 1e6; }
  void Run(ExecutionContext&) override { release_->Wait(); }
  void Drop(absl::Status) override {}

 private:
  Event* const release_;
};

class DeviceCopiesTest : public CacheTest {
 protected:
  ~DeviceCopiesTest() override {
    for (testing::FakeDevice* const device : devices_) device->Recover();
    release_.Set();
    End();  // before release_ is destroyed
  }

  void StartGpus(int gpus, size_t device_units = 4) {
    Start(std::vector<DeviceKind>(gpus, DeviceKind::kCuda), device_units, /*host_units=*/8);
  }
  void Occupy(size_t i) {
    ASSERT_OK(slot(i).scheduler->Submit(std::make_shared<LongJob>(&release_)));
  }

  FactorCache::Pin AcquireToSolve(const Handle& handle) {
    absl::StatusOr<FactorCache::Pin> pin = cache_->AcquireToSolve(kTenant, handle);
    EXPECT_OK(pin);
    return *std::move(pin);
  }
  // Returns the index of the device on which a solve would run.
  int Choice(const Handle& handle) { return AcquireToSolve(handle).slot().index; }
  int64_t Copies() { return cache_->copies().entries; }
  void WaitForCopies(int64_t count) {
    ASSERT_TRUE(testing::Eventually([&] { return Copies() == count; })) << Copies();
  }
  // Waits until a copy that was started has ended.
  void WaitForAdmissions() {
    for (const auto& slot : pool_->slots()) {
      ASSERT_TRUE(testing::Eventually([&] {
        const JobScheduler::Load load = slot->admitting->load();
        return load.streams_busy == 0 && load.queue_depth == 0;
      }));
    }
  }
  // Puts a factor on the first device, occupies the device, and uses the factor until it is copied
  // to a second one.
  Handle PutHot(char fill = 'a') {
    const Handle handle = Put(fill);
    Occupy(0);
    const FactorCache::Pin first = AcquireToSolve(handle);
    const FactorCache::Pin second = AcquireToSolve(handle);
    EXPECT_EQ(second.slot().index, 0) << "the copy does not exist yet";
    WaitForCopies(1);
    return handle;
  }

  Event release_;
};

TEST_F(DeviceCopiesTest, AHotFactorIsCopiedToAnIdleDevice) {
  StartGpus(2);
  const Handle handle = PutHot();
  FactorCache::Pin pin = AcquireToSolve(handle);
  EXPECT_EQ(pin.slot().index, 1);
  EXPECT_EQ(pin.home().index, 0);
  EXPECT_EQ(pin.promotion_bytes(), 0u);
  bool promoted = true;
  ASSERT_OK_AND_ASSIGN(const char fill, UsePinned(pin, &promoted));
  EXPECT_EQ(fill, 'a');
  EXPECT_FALSE(promoted);
  EXPECT_EQ(cache_->copies().bytes, static_cast<int64_t>(kUnit));
  EXPECT_EQ(DeviceUnits(0), 1u);
  EXPECT_EQ(DeviceUnits(1), 1u);
  EXPECT_EQ(loads_.Of(kTenant).bytes[static_cast<size_t>(Tier::kDevice)],
            static_cast<int64_t>(2 * kUnit))
      << "the copy is charged to its tenant";
  EXPECT_EQ(loads_.Of(kTenant).bytes_in_flight(), 0);
  EXPECT_EQ(cache_->tiers()[static_cast<size_t>(Tier::kDevice)].entries, 1);
  EXPECT_EQ(Metric("crout_cache_device_copy_seconds_count"), 1);
  EXPECT_EQ(cache_->Acquire(kTenant, handle)->slot().index, 0) << "only solves use copies";
}

TEST_F(DeviceCopiesTest, SolvesSpreadOverTheDevicesThatStartThemFirst) {
  StartGpus(3);
  const Handle handle = PutHot();
  Occupy(1);
  const FactorCache::Pin first = AcquireToSolve(handle);
  EXPECT_NE(Choice(handle), 2) << "the copy does not exist yet";
  WaitForCopies(2);
  EXPECT_EQ(Choice(handle), 2);
  const ExpectedJobs::Job coming(slot(2).expected, /*seconds=*/1e9, /*bytes=*/0);
  EXPECT_NE(Choice(handle), 2) << "jobs that are expected count";
}

TEST_F(DeviceCopiesTest, AnIdleOriginalIsPreferred) {
  StartGpus(2);
  const Handle handle = PutHot();
  release_.Set();
  ASSERT_TRUE(testing::Eventually([&] { return slot(0).IsIdle(); }));
  EXPECT_EQ(Choice(handle), 0);
}

TEST_F(DeviceCopiesTest, OnlyAFactorInUseOnABusyDeviceIsCopied) {
  StartGpus(2);
  const Handle handle = Put('a');
  {
    const FactorCache::Pin first = AcquireToSolve(handle);
    EXPECT_EQ(Choice(handle), 0) << "the device is idle";
  }
  Occupy(0);
  EXPECT_EQ(Choice(handle), 0) << "no other call uses the factor";
  WaitForAdmissions();
  EXPECT_EQ(Copies(), 0);
}

TEST_F(DeviceCopiesTest, OnlyIdleDevicesWithFreeMemoryGetCopies) {
  StartGpus(2, /*device_units=*/2);
  const Handle handle = Put('a');
  const Handle other = Put('x', 2 * kUnit, /*slot=*/1);
  Occupy(0);
  const FactorCache::Pin first = AcquireToSolve(handle);
  EXPECT_EQ(Choice(handle), 0);
  WaitForAdmissions();
  EXPECT_EQ(Copies(), 0) << "the memory has no room";
  EXPECT_EQ(TierOf(other), Tier::kDevice);
  ASSERT_OK(cache_->Release(kTenant, other));
  Occupy(1);
  EXPECT_EQ(Choice(handle), 0);
  WaitForAdmissions();
  EXPECT_EQ(Copies(), 0) << "the device is busy";
}

TEST_F(DeviceCopiesTest, TheHostGetsNoCopies) {
  Start({DeviceKind::kCuda, DeviceKind::kHost}, /*device_units=*/4, /*host_units=*/8);
  const Handle handle = Put('a');
  Occupy(0);
  const FactorCache::Pin first = AcquireToSolve(handle);
  EXPECT_EQ(Choice(handle), 0);
  WaitForAdmissions();
  EXPECT_EQ(Copies(), 0);
}

TEST_F(DeviceCopiesTest, CopiesGoBeforeAnyFactorIsEvicted) {
  StartGpus(2);
  const Handle handle = PutHot();
  const Handle resident = Put('r', kUnit, /*slot=*/1);
  EXPECT_OK(cache_->CheckReachable(slot(1), 3 * kUnit, kTenant));
  EXPECT_EQ(Copies(), 1) << "evictions of factors would suffice";
  EXPECT_EQ(cache_->EvictableBytes(slot(1)), 2 * kUnit);
  EXPECT_EQ(slot(1).idle_bytes, 2 * kUnit);
  ASSERT_OK_AND_ASSIGN(const Reservation job, cache_->ReserveOnDevice(slot(1), 3 * kUnit, kTenant));
  EXPECT_EQ(Copies(), 0);
  EXPECT_EQ(TierOf(resident), Tier::kDevice);
  EXPECT_EQ(TierOf(handle), Tier::kDevice);
  EXPECT_EQ(slot(1).idle_bytes, kUnit);
  EXPECT_EQ(device(1).counting_memory().live_bytes(), kUnitData);
  EXPECT_EQ(Choice(handle), 0);
}

TEST_F(DeviceCopiesTest, ACopyInUseEndsWithItsLastUse) {
  StartGpus(2);
  const Handle handle = PutHot();
  std::optional<FactorCache::Pin> pin(AcquireToSolve(handle));
  ASSERT_EQ(pin->slot().index, 1);
  EXPECT_FALSE(cache_->CheckReachable(slot(1), 4 * kUnit, kTenant).ok());
  EXPECT_EQ(Copies(), 0) << "no further solve may use it";
  EXPECT_EQ(Choice(handle), 0);
  ASSERT_OK_AND_ASSIGN(const char fill, UsePinned(*pin));
  EXPECT_EQ(fill, 'a');
  EXPECT_EQ(DeviceUnits(1), 1u);
  pin.reset();
  EXPECT_EQ(DeviceUnits(1), 0u);
  EXPECT_OK(cache_->ReserveOnDevice(slot(1), 4 * kUnit, kTenant));
}

TEST_F(DeviceCopiesTest, CopiesEndWithTheirOriginal) {
  StartGpus(2);
  const Handle handle = PutHot();
  ASSERT_OK(cache_->Release(kTenant, handle));
  EXPECT_EQ(ReasonGone(handle), kReasonHandleReleased);
  Sweep();
  EXPECT_EQ(Copies(), 0);
  EXPECT_EQ(DeviceUnits(1), 0u);
  EXPECT_EQ(device(1).counting_memory().live_bytes(), 0u);
  EXPECT_EQ(loads_.Of(kTenant).bytes[static_cast<size_t>(Tier::kDevice)], 0);
}

TEST_F(DeviceCopiesTest, TheNextVersionHasNoCopies) {
  StartGpus(2);
  const Handle handle = PutHot();
  FactorCache::Pin old = AcquireToSolve(handle);
  ASSERT_EQ(old.slot().index, 1);
  ASSERT_OK_AND_ASSIGN(NewFactor next, Make('b'));
  ASSERT_OK(cache_->Replace(kTenant, handle, std::move(next)));
  FactorCache::Pin current = AcquireToSolve(handle);
  EXPECT_EQ(current.slot().index, 0);
  EXPECT_EQ(current.version(), 2);
  EXPECT_EQ(old.version(), 1);
  Sweep();
  EXPECT_EQ(Copies(), 0);
  ASSERT_OK_AND_ASSIGN(const char fill, UsePinned(old));
  EXPECT_EQ(fill, 'a') << "calls that pinned the old version continue to use it";
}

TEST_F(DeviceCopiesTest, AFactorThatMovesToHostMemoryHasNoCopies) {
  StartGpus(2, /*device_units=*/2);
  const Handle handle = PutHot();
  Put('x', 2 * kUnit);
  EXPECT_EQ(TierOf(handle), Tier::kHost);
  Sweep();
  EXPECT_EQ(Copies(), 0);
  EXPECT_EQ(DeviceUnits(1), 0u);
  EXPECT_EQ(Choice(handle), 0);
}

TEST_F(DeviceCopiesTest, AUseOfACopyCountsAsAUseOfTheFactor) {
  StartGpus(2, /*device_units=*/2);
  const Handle handle = PutHot();
  const Handle later = Put('l');
  EXPECT_EQ(Choice(handle), 1);
  Put('x');
  EXPECT_EQ(TierOf(handle), Tier::kDevice);
  EXPECT_EQ(TierOf(later), Tier::kHost);
}

TEST_F(DeviceCopiesTest, AUseOfACopyDoesNotCancelAnEviction) {
  StartGpus(2, /*device_units=*/2);
  const Handle handle = PutHot();
  host_memory_.counting().FailAllocations(/*count=*/1, /*after=*/1);  // a second demotion fails
  host_memory_.gate().Close();
  std::thread evicting([&] { EXPECT_OK(cache_->ReserveOnDevice(slot(0), 2 * kUnit, kTenant)); });
  host_memory_.gate().WaitUntilHeld();
  EXPECT_EQ(Choice(handle), 1);
  host_memory_.gate().Open();
  evicting.join();
  ASSERT_EQ(ReasonGone(handle), "");
  EXPECT_EQ(TierOf(handle), Tier::kHost);
  EXPECT_EQ(Choice(handle), 0) << "the copy has ended";
}

TEST_F(DeviceCopiesTest, ALostDeviceLosesItsCopies) {
  StartGpus(2);
  const Handle handle = PutHot();
  device(1).BreakDown();
  EXPECT_EQ(Choice(handle), 0);
  Sweep();
  EXPECT_EQ(Copies(), 0);
  EXPECT_EQ(DeviceUnits(1), 0u);
  EXPECT_EQ(ReasonGone(handle), "");
}

TEST_F(DeviceCopiesTest, AFactorIsLostWithItsOwnDevice) {
  StartGpus(2);
  const Handle handle = PutHot();
  device(0).BreakDown();
  Sweep();
  EXPECT_EQ(ReasonGone(handle), kReasonDeviceLost);
  EXPECT_EQ(Copies(), 0);
  EXPECT_EQ(DeviceUnits(1), 0u);
}

// Holds the copy while it allocates its memory.
TEST_F(DeviceCopiesTest, AFactorReleasedDuringTheCopyLeavesNothing) {
  StartGpus(2);
  const Handle handle = Put('a');
  Occupy(0);
  testing::Gate& memory = device(1).counting_memory().gate();
  memory.Close();
  {
    const FactorCache::Pin first = AcquireToSolve(handle);
    EXPECT_EQ(Choice(handle), 0);
    memory.WaitUntilHeld();
  }
  ASSERT_OK(cache_->Release(kTenant, handle));
  EXPECT_EQ(device(0).counting_memory().live_bytes(), kUnitData) << "the copy reads it";
  memory.Open();
  WaitForAdmissions();
  EXPECT_EQ(Copies(), 0);
  EXPECT_EQ(DeviceUnits(0), 0u);
  EXPECT_EQ(DeviceUnits(1), 0u);
}

TEST_F(DeviceCopiesTest, ADeviceLostDuringTheCopyLeavesNoCopy) {
  StartGpus(2);
  const Handle handle = Put('a');
  Occupy(0);
  testing::Gate& memory = device(1).counting_memory().gate();
  memory.Close();
  {
    const FactorCache::Pin first = AcquireToSolve(handle);
    EXPECT_EQ(Choice(handle), 0);
    memory.WaitUntilHeld();
  }
  device(0).BreakDown();
  memory.Open();
  WaitForAdmissions();
  EXPECT_EQ(Copies(), 0);
  EXPECT_EQ(DeviceUnits(1), 0u);
  EXPECT_EQ(Metric("crout_cache_device_copy_seconds_count"), 0);
}

TEST_F(DeviceCopiesTest, OneCopyIsMadeAtATime) {
  StartGpus(3);
  const Handle a = Put('a');
  const Handle b = Put('b');
  Occupy(0);
  testing::Gate& memory = device(1).counting_memory().gate();
  memory.Close();
  const FactorCache::Pin use_of_a = AcquireToSolve(a);
  const FactorCache::Pin use_of_b = AcquireToSolve(b);
  EXPECT_EQ(Choice(a), 0);
  memory.WaitUntilHeld();
  EXPECT_EQ(Choice(b), 0);
  memory.Open();
  WaitForCopies(1);
  EXPECT_EQ(Choice(b), 0);
  WaitForCopies(2);
  EXPECT_EQ(Choice(b), 1);
}

TEST_F(DeviceCopiesTest, ACopyThatLacksMemoryIsTriedAgain) {
  StartGpus(2);
  const Handle handle = Put('a');
  Occupy(0);
  device(1).counting_memory().FailAllocations(1);
  const FactorCache::Pin first = AcquireToSolve(handle);
  EXPECT_EQ(Choice(handle), 0);
  WaitForAdmissions();
  EXPECT_EQ(Copies(), 0);
  EXPECT_EQ(DeviceUnits(1), 0u);
  EXPECT_EQ(Choice(handle), 0);
  WaitForCopies(1);
}

TEST_F(DeviceCopiesTest, CopiesGoBeforeAQuotaRefusesAJob) {
  QuotaTable table;
  table.tenants[std::string(kTenant)].device_bytes = 2 * kUnit;
  quotas_.Set(table);
  StartGpus(2);
  PutHot();
  EXPECT_OK(cache_->CheckReachable(slot(1), 2 * kUnit, kTenant));
  EXPECT_EQ(Copies(), 0);
}

TEST_F(DeviceCopiesTest, ARefusedRequestLeavesTheCopies) {
  StartGpus(2);
  PutHot();
  EXPECT_FALSE(cache_->CheckReachable(slot(1), 5 * kUnit, kTenant).ok());
  EXPECT_FALSE(cache_->ReserveOnDevice(slot(1), 5 * kUnit, kTenant).ok());
  EXPECT_EQ(Copies(), 1);
}

TEST_F(DeviceCopiesTest, AnExceededQuotaLeavesTheCopiesOfOthers) {
  QuotaTable table;
  table.tenants["small"].device_bytes = kUnit;
  quotas_.Set(table);
  StartGpus(2);
  PutHot();
  EXPECT_FALSE(cache_->ReserveOnDevice(slot(1), 2 * kUnit, "small").ok());
  EXPECT_EQ(Copies(), 1);
}

TEST_F(DeviceCopiesTest, UsesReplacementsAndPressureAtTheSameTime) {
  constexpr int kRounds = 200;
  StartGpus(2, /*device_units=*/8);
  const Handle a = PutHot('a');
  const Handle b = Put('b');
  {
    std::vector<std::jthread> threads;
    for (const auto& [handle, fill] : {std::pair(a, 'a'), std::pair(b, 'b'), std::pair(a, 'a')}) {
      threads.emplace_back([&, handle = handle, fill = fill] {
        for (int round = 0; round < kRounds; ++round) {
          FactorCache::Pin pin = AcquireToSolve(handle);
          const absl::StatusOr<char> used = UsePinned(pin);
          ASSERT_TRUE(used.ok() && *used == fill) << used.status();
        }
      });
    }
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        // Refused while copies in use have memory.
        (void)cache_->ReserveOnDevice(slot(1), 8 * kUnit, kTenant).ok();
      }
    });
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        absl::StatusOr<NewFactor> next = Make('a');
        ASSERT_OK(next);
        ASSERT_OK(cache_->Replace(kTenant, a, *std::move(next)));
      }
    });
  }
  for (const Handle& handle : {a, b}) ASSERT_OK(cache_->Release(kTenant, handle));
  WaitForAdmissions();
  Sweep();
  EXPECT_EQ(Copies(), 0);
  for (const size_t i : {0, 1}) {
    EXPECT_EQ(DeviceUnits(i), 0u);
    EXPECT_EQ(device(i).counting_memory().live_bytes(), 0u);
  }
}

}  // namespace
}  // namespace crout::device_copies_test
