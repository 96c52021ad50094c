// SPDX-License-Identifier: Apache-2.0

// Tests moves of factors between tiers: memory pressure, promotion, corruption, lost devices.
#include <atomic>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/error.h"
#include "tests/server/engine/cache/cache_fixture.h"
#include "tests/support/status_matchers.h"

namespace crout::tiered_store_test {
namespace {

using ::testing::Optional;

MATCHER_P(HoldsChar, value, "") { return arg.ok() && *arg == value; }

class TieredStoreTest : public CacheTest {
 protected:
  ~TieredStoreTest() override { host_memory_.gate().Open(); }

  static InsertOptions Pinned(absl::Duration lease = absl::Hours(1)) {
    InsertOptions options;
    options.lease = lease;
    options.pin = true;
    return options;
  }

  double Evictions(const char* tier, const char* reason) {
    return Metric(std::string("crout_cache_evictions_total{reason=\"") + reason + "\",tier=\"" +
                  tier + "\"}");
  }
};

TEST_F(TieredStoreTest, PressureDemotesTheLeastRecentlyUsedFactorAndUsePromotesIt) {
  Start(/*device_units=*/2, /*host_units=*/4);
  const Handle a = Put('a');
  const Handle b = Put('b');
  EXPECT_OK(Touch(a));
  const Handle c = Put('c');
  EXPECT_EQ(TierOf(a), Tier::kDevice);
  EXPECT_EQ(TierOf(b), Tier::kHost);
  EXPECT_EQ(TierOf(c), Tier::kDevice);
  EXPECT_EQ(DeviceUnits(), 2u);
  EXPECT_EQ(HostUnits(), 1u);
  EXPECT_EQ(device().counting_memory().live_bytes(), 2 * kUnitData);
  EXPECT_EQ(Evictions("device", "pressure"), 1);
  EXPECT_EQ(cache_->tiers()[1].entries, 1);
  EXPECT_EQ(cache_->tiers()[1].bytes, static_cast<int64_t>(kUnit));

  bool promoted = false;
  EXPECT_THAT(Use(b, &promoted), HoldsChar('b'));
  EXPECT_TRUE(promoted);
  EXPECT_EQ(TierOf(b), Tier::kDevice);
  EXPECT_EQ(TierOf(a), Tier::kHost) << "b's way back pushed out the next";
  EXPECT_EQ(HostUnits(), 1u) << "b's copy is gone, a's is there";
  EXPECT_EQ(host_memory_.counting().live_bytes(), kUnitData);
  EXPECT_THAT(Use(b, &promoted), HoldsChar('b'));
  EXPECT_FALSE(promoted);
  EXPECT_EQ(Metric("crout_cache_promotions_total"), 1);
  EXPECT_EQ(Metric("crout_cache_promotion_seconds_count"), 1);
  EXPECT_GT(Metric("crout_cache_promotion_seconds_sum"), 0);
  EXPECT_EQ(Metric("crout_cache_hits_total{tier=\"host\"}"), 1);
  EXPECT_EQ(Metric("crout_cache_hits_total{tier=\"device\"}"), 2);

  for (const Handle& handle : {a, b, c}) EXPECT_OK(cache_->Release(kTenant, handle));
  EXPECT_EQ(DeviceUnits(), 0u);
  EXPECT_EQ(HostUnits(), 0u);
  EXPECT_EQ(host_memory_.counting().live_bytes(), 0u);
  EXPECT_EQ(device().counting_memory().live_bytes(), 0u);
}

// Allocates blocks that cannot be copied to another tier.
class FixedMemory final : public MemoryResource {
 public:
  bool is_fixed() const override { return true; }
  int live() const { return live_; }

 protected:
  absl::StatusOr<void*> DoAllocate(size_t bytes) override {
    ++live_;
    return std::malloc(bytes);
  }
  void DoDeallocate(void* data, size_t) override {
    --live_;
    std::free(data);
  }

 private:
  std::atomic<int> live_ = 0;
};

TEST_F(TieredStoreTest, AFactorThatCannotBeCopiedIsEvictedAtOnce) {
  static FixedMemory fixed;  // outlives the cache
  Start(/*device_units=*/2, /*host_units=*/1);
  Put('h');
  Put('h', 2 * kUnit);
  ASSERT_EQ(HostUnits(), 1u) << "another's copy fills the host's memory";
  ASSERT_OK_AND_ASSIGN(NewFactor factor, Make('a', kUnit / 2));  // a copy would fit
  ASSERT_OK_AND_ASSIGN(Buffer block, fixed.Allocate(1));
  *block.data() = std::byte{'a'};
  factor.factorization.parts.Add("fixed", PartKind::kFactor, std::move(block));
  InsertOptions options;
  options.tenant = kTenant;
  options.lease = absl::Hours(1);
  ASSERT_OK_AND_ASSIGN(const FactorInfo inserted, cache_->Insert(std::move(factor), options));
  const Handle a = inserted.handle;
  EXPECT_THAT(Use(a), HoldsChar('a'));
  const Handle c = Put('c', 2 * kUnit);
  EXPECT_EQ(ReasonGone(a), kReasonHandleEvicted);
  EXPECT_EQ(fixed.live(), 0);
  EXPECT_EQ(HostUnits(), 1u) << "nothing made room for a copy";
  EXPECT_THAT(Use(c), HoldsChar('c'));
}

TEST_F(TieredStoreTest, TwoPinsOfAFactorInHostMemoryMoveItOnce) {
  Start(/*device_units=*/2, /*host_units=*/4);
  const Handle a = Put('a');
  Put('b', 2 * kUnit);
  ASSERT_OK_AND_ASSIGN(FactorCache::Pin first, cache_->Acquire(kTenant, a));
  ASSERT_OK_AND_ASSIGN(FactorCache::Pin second, cache_->Acquire(kTenant, a));
  EXPECT_EQ(first.promotion_bytes(), kUnit);
  ASSERT_OK_AND_ASSIGN(Reservation room, cache_->ReserveOnDevice(slot(), 2 * kUnit));
  ASSERT_OK_AND_ASSIGN(const auto context, device().CreateContext());
  bool promoted = false;
  EXPECT_OK(first.OnDevice(*context, room.Split(kUnit), &promoted));
  EXPECT_TRUE(promoted);
  EXPECT_OK(second.OnDevice(*context, std::move(room), &promoted));
  EXPECT_FALSE(promoted);
  EXPECT_EQ(DeviceUnits(), 1u) << "the second's room was given back";
}

TEST_F(TieredStoreTest, PinnedFactorsStay) {
  Start(/*device_units=*/3, /*host_units=*/8);
  const Handle a = Put('a');
  const Handle b = Put('b');
  ASSERT_OK_AND_ASSIGN(FactorCache::Pin pin, cache_->Acquire(kTenant, a));
  EXPECT_EQ(cache_->EvictableBytes(slot()), kUnit);
  const auto refused = cache_->ReserveOnDevice(slot(), 3 * kUnit);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(ReasonOf(refused.status()), Optional(std::string(kReasonMemoryExhausted)));
  EXPECT_TRUE(RetryAfterOf(refused.status()).has_value());
  EXPECT_EQ(TierOf(b), Tier::kDevice) << "evicting it would not have sufficed";
  EXPECT_OK(cache_->ReserveOnDevice(slot(), 2 * kUnit));
  EXPECT_EQ(TierOf(a), Tier::kDevice);
  EXPECT_EQ(TierOf(b), Tier::kHost);
}

TEST_F(TieredStoreTest, AFactorThatItsTenantPinnedIsNeitherMovedNorEvicted) {
  Start(/*device_units=*/4, /*host_units=*/1);
  const Handle pinned = Put('p', kUnit, 0, Pinned());
  EXPECT_TRUE(cache_->Describe(kTenant, pinned)->pinned);
  EXPECT_EQ(cache_->pinned_bytes(), kUnit);
  EXPECT_EQ(loads_.Of(kTenant).pinned_bytes, static_cast<int64_t>(kUnit));
  for (int i = 0; i < 8; ++i) Put('x');
  EXPECT_EQ(TierOf(pinned), Tier::kDevice);
  EXPECT_EQ(cache_->ReserveOnDevice(slot(), 4 * kUnit).status().code(),
            absl::StatusCode::kResourceExhausted);
  // It becomes idle again, and thus the next to move.
  ASSERT_OK(cache_->Renew(kTenant, pinned, std::nullopt, Renewal::kReplace, /*pin=*/false));
  EXPECT_EQ(cache_->pinned_bytes(), 0);
  EXPECT_OK(cache_->ReserveOnDevice(slot(), 4 * kUnit));
  EXPECT_EQ(loads_.Of(kTenant).pinned_bytes, 0);
}

TEST_F(TieredStoreTest, PinsAreLimitedForATenantAndInEachMemory) {
  Start(/*device_units=*/8, /*host_units=*/8);
  const auto pin = [&](std::string_view tenant, size_t units) {
    InsertOptions options = Pinned();
    options.tenant = tenant;
    absl::StatusOr<NewFactor> factor = Make('a', units * kUnit);
    if (!factor.ok()) return absl::StatusOr<FactorInfo>(factor.status());
    return cache_->Insert(*std::move(factor), options);
  };
  ASSERT_OK_AND_ASSIGN(const FactorInfo first, pin(kTenant, 2));
  const absl::Status tenant = pin(kTenant, 2).status();
  EXPECT_EQ(tenant.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(ReasonOf(tenant), Optional(std::string(kReasonPinLimit)));
  EXPECT_OK(pin(kTenant, 1));
  EXPECT_OK(pin("bob", 1));
  const absl::Status memory = pin("carol", 1).status();  // half of the device's memory is pinned
  EXPECT_THAT(ReasonOf(memory), Optional(std::string(kReasonPinLimit)));
  ASSERT_OK(cache_->Release(kTenant, first.handle));
  EXPECT_OK(pin("carol", 1));
  EXPECT_EQ(cache_->pinned_bytes(), 3 * kUnit);
}

TEST_F(TieredStoreTest, APinSurvivesAReplacementWithinItsLimit) {
  Start(/*device_units=*/8, /*host_units=*/8);
  const Handle handle = Put('a', kUnit, 0, Pinned());
  ASSERT_OK_AND_ASSIGN(NewFactor next, Make('b', 3 * kUnit));
  ASSERT_OK_AND_ASSIGN(const FactorInfo info, cache_->Replace(kTenant, handle, std::move(next)));
  EXPECT_TRUE(info.pinned);
  EXPECT_EQ(cache_->pinned_bytes(), 3 * kUnit);
  ASSERT_OK_AND_ASSIGN(next, Make('c', 4 * kUnit));
  EXPECT_THAT(ReasonOf(cache_->Replace(kTenant, handle, std::move(next)).status()),
              Optional(std::string(kReasonPinLimit)));
  EXPECT_THAT(Use(handle), HoldsChar('b')) << "the old version stays";
}

TEST_F(TieredStoreTest, APinnedFactorEndsWithItsLease) {
  Start(/*device_units=*/4, /*host_units=*/1);
  const Handle handle = Put('p', kUnit, 0, Pinned(absl::Minutes(1)));
  Advance(absl::Minutes(2));
  Sweep();
  EXPECT_EQ(ReasonGone(handle), kReasonHandleExpired);
  EXPECT_EQ(cache_->pinned_bytes(), 0);
}

TEST_F(TieredStoreTest, APinCancelsAnEvictionInProgress) {
  Start(/*device_units=*/2, /*host_units=*/2);
  const Handle a = Put('a');
  host_memory_.gate().Close();
  std::jthread evicting([&] { EXPECT_FALSE(cache_->ReserveOnDevice(slot(), 2 * kUnit).ok()); });
  host_memory_.gate().WaitUntilHeld();
  ASSERT_OK(cache_->Renew(kTenant, a, std::nullopt, Renewal::kReplace, /*pin=*/true));
  host_memory_.gate().Open();
  evicting.join();
  EXPECT_EQ(TierOf(a), Tier::kDevice);
}

TEST_F(TieredStoreTest, AFactorLargerThanTheBudgetHasNoRetryDelay) {
  Start(/*device_units=*/3, /*host_units=*/8);
  const auto refused = cache_->ReserveOnDevice(slot(), 3 * kUnit + 1);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(RetryAfterOf(refused.status()).has_value());
  EXPECT_FALSE(RetryAfterOf(cache_->ReserveOnHost(9 * kUnit).status()).has_value());
}

TEST_F(TieredStoreTest, AFullHostDropsItsLeastRecentlyUsed) {
  Start(/*device_units=*/1, /*host_units=*/2);
  const Handle a = Put('a');
  const Handle b = Put('b');
  const Handle c = Put('c');
  const Handle d = Put('d');
  EXPECT_EQ(ReasonGone(a), kReasonHandleEvicted);
  EXPECT_EQ(ReasonGone(a, "bob"), kReasonHandleUnknown);
  EXPECT_FALSE(Touch(a).ok());
  EXPECT_EQ(Metric("crout_cache_misses_total{reason=\"evicted\"}"), 1);
  EXPECT_EQ(Evictions("device", "pressure"), 3);
  EXPECT_EQ(Evictions("host", "pressure"), 1);
  for (const auto& [handle, fill] : {std::pair(b, 'b'), std::pair(c, 'c'), std::pair(d, 'd')}) {
    ASSERT_EQ(ReasonGone(handle), "");
  }
  EXPECT_EQ(HostUnits(), 2u);
  ASSERT_OK_AND_ASSIGN(const Reservation host, cache_->ReserveOnHost(kUnit));
  EXPECT_EQ(ReasonGone(b), kReasonHandleEvicted);
  EXPECT_EQ(ReasonGone(c), "");
}

TEST_F(TieredStoreTest, WithoutHostMemoryTheFactorItselfIsEvicted) {
  Start(/*device_units=*/2, /*host_units=*/1);
  const Handle a = Put('a');
  const Handle b = Put('b', 2 * kUnit);
  EXPECT_EQ(TierOf(a), Tier::kHost);
  Put('c', 2 * kUnit);
  EXPECT_EQ(ReasonGone(b), kReasonHandleEvicted) << "two units never fit the host's one";
  EXPECT_EQ(TierOf(a), Tier::kHost) << "dropping it would not have helped";
  EXPECT_EQ(DeviceUnits(), 2u);
}

TEST_F(TieredStoreTest, AFactorThatCannotBeCopiedIsEvicted) {
  Start(/*device_units=*/1, /*host_units=*/4);
  const Handle a = Put('a');
  host_memory_.counting().FailAllocations(1);
  const Handle b = Put('b');
  EXPECT_EQ(ReasonGone(a), kReasonHandleEvicted);
  EXPECT_EQ(ReasonGone(b), "");
  EXPECT_EQ(HostUnits(), 0u);
}

TEST_F(TieredStoreTest, ExpiredFactorsAreRemovedBeforeOthersMove) {
  Start(/*device_units=*/2, /*host_units=*/4);
  const Handle living = Put('a');
  const Handle expired =
      Put('b', kUnit, 0, {.tenant = "", .name = "", .request_id = "", .lease = absl::Minutes(1)});
  Advance(absl::Minutes(2));
  Put('c');
  EXPECT_EQ(ReasonGone(expired), kReasonHandleExpired);
  EXPECT_EQ(TierOf(living), Tier::kDevice);
}

TEST_F(TieredStoreTest, APinDuringTheMoveKeepsTheFactorOnItsDevice) {
  Start(/*device_units=*/2, /*host_units=*/4);
  const Handle a = Put('a');
  const Handle b = Put('b');
  host_memory_.gate().Close();
  absl::StatusOr<Reservation> reserved = absl::UnknownError("");
  std::thread evictor([&] { reserved = cache_->ReserveOnDevice(slot(), kUnit); });
  host_memory_.gate().WaitUntilHeld();
  {
    // Neither the pin nor a use of it waits for the copy in progress.
    ASSERT_OK_AND_ASSIGN(FactorCache::Pin pin, cache_->Acquire(kTenant, a));
    EXPECT_EQ(pin.promotion_bytes(), 0u);
    EXPECT_THAT(UsePinned(pin), HoldsChar('a'));
  }
  host_memory_.gate().Open();
  evictor.join();
  EXPECT_OK(reserved);
  EXPECT_EQ(TierOf(a), Tier::kDevice);
  EXPECT_EQ(TierOf(b), Tier::kHost) << "the next one went instead";
  EXPECT_EQ(HostUnits(), 1u);
  EXPECT_EQ(Evictions("device", "pressure"), 1);
}

TEST_F(TieredStoreTest, AReleaseDuringTheMoveFreesEverything) {
  Start(/*device_units=*/1, /*host_units=*/4);
  const Handle a = Put('a');
  host_memory_.gate().Close();
  absl::StatusOr<Reservation> reserved = absl::UnknownError("");
  std::thread evictor([&] { reserved = cache_->ReserveOnDevice(slot(), kUnit); });
  host_memory_.gate().WaitUntilHeld();
  EXPECT_OK(cache_->Release(kTenant, a));
  EXPECT_EQ(device().counting_memory().live_bytes(), kUnitData) << "the copy still reads them";
  host_memory_.gate().Open();
  evictor.join();
  EXPECT_OK(reserved);
  EXPECT_EQ(DeviceUnits(), 1u) << "the reservation's";
  EXPECT_EQ(HostUnits(), 0u);
  EXPECT_EQ(ReasonGone(a), kReasonHandleReleased);
  EXPECT_EQ(device().counting_memory().live_bytes(), 0u);
}

TEST_F(TieredStoreTest, ACorruptCopyIsReportedOnceAndRemoved) {
  Start(/*device_units=*/1, /*host_units=*/4);
  const Handle a = Put('a');
  Put('b');
  ASSERT_EQ(TierOf(a), Tier::kHost);
  host_memory_.last()[kUnit / 2] ^= std::byte{1};
  const auto used = Use(a);
  EXPECT_EQ(used.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(ReasonOf(used.status()), Optional(std::string(kReasonDataLoss)));
  EXPECT_EQ(ReasonGone(a), kReasonDataLoss);
  EXPECT_EQ(Evictions("host", "data_loss"), 1);
  EXPECT_EQ(HostUnits(), 1u) << "b's, which made room for a";
  EXPECT_EQ(DeviceUnits(), 0u);
}

TEST_F(TieredStoreTest, AFactorOnItsDeviceHasNoHostCopy) {
  Start(/*device_units=*/1, /*host_units=*/4);
  const Handle a = Put('a');
  ASSERT_OK_AND_ASSIGN(FactorCache::Pin pin, cache_->Acquire(kTenant, a));
  const auto read = [](const FactorParts&) { return absl::InternalError("there is none to read"); };
  ASSERT_OK_AND_ASSIGN(const bool was_there, pin.ReadOnHost(read));
  EXPECT_FALSE(was_there);
}

TEST_F(TieredStoreTest, ReadingInHostMemoryMovesNothing) {
  Start(/*device_units=*/1, /*host_units=*/4);
  const Handle a = Put('a');
  Put('b');
  ASSERT_OK_AND_ASSIGN(FactorCache::Pin pin, cache_->Acquire(kTenant, a));
  const auto read = [](const FactorParts& parts) {
    EXPECT_EQ(parts[kLuPart].data()[0], std::byte{'a'});
    return absl::OkStatus();
  };
  ASSERT_OK_AND_ASSIGN(const bool was_there, pin.ReadOnHost(read));
  EXPECT_TRUE(was_there);
  EXPECT_EQ(TierOf(a), Tier::kHost);
}

TEST_F(TieredStoreTest, WithoutDeviceMemoryAFactorStaysInHostMemory) {
  Start(/*device_units=*/1, /*host_units=*/4);
  const Handle a = Put('a');
  Put('b');
  ASSERT_OK_AND_ASSIGN(FactorCache::Pin pin, cache_->Acquire(kTenant, a));
  ASSERT_OK_AND_ASSIGN(const auto context, device().CreateContext());
  bool promoted = true;
  const auto refused = pin.OnDevice(*context, Reservation(), &promoted);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(promoted);
  EXPECT_EQ(TierOf(a), Tier::kHost);
  EXPECT_THAT(UsePinned(pin), HoldsChar('a'));
}

TEST_F(TieredStoreTest, AFactorInHostMemoryOutlivesItsDevice) {
  Start({DeviceKind::kCuda, DeviceKind::kCuda}, /*device_units=*/1, /*host_units=*/4);
  const Handle a = Put('a');
  const Handle b = Put('b');
  device(0).BreakDown();
  Sweep();
  EXPECT_EQ(ReasonGone(b), kReasonDeviceLost);
  EXPECT_EQ(TierOf(a), Tier::kHost);
  bool promoted = false;
  EXPECT_THAT(Use(a, &promoted), HoldsChar('a'));
  EXPECT_TRUE(promoted);
  EXPECT_EQ(cache_->Describe(kTenant, a)->device, "cuda:1");
  EXPECT_EQ(DeviceUnits(1), 1u);
  EXPECT_EQ(HostUnits(), 0u);
}

TEST_F(TieredStoreTest, ADeviceLostDuringTheMoveLosesTheFactor) {
  Start(/*device_units=*/1, /*host_units=*/4);
  const Handle a = Put('a');
  host_memory_.gate().Close();
  absl::StatusOr<Reservation> reserved = absl::UnknownError("");
  std::thread evictor([&] { reserved = cache_->ReserveOnDevice(slot(), kUnit); });
  host_memory_.gate().WaitUntilHeld();
  device().BreakDown();
  host_memory_.gate().Open();
  evictor.join();
  EXPECT_EQ(ReasonGone(a), kReasonDeviceLost);
  EXPECT_EQ(HostUnits(), 0u);
}

TEST_F(TieredStoreTest, TheHostDeviceHasOneTier) {
  Start({DeviceKind::kHost}, /*device_units=*/0, /*host_units=*/2);
  const Handle a = Put('a');
  const Handle b = Put('b');
  EXPECT_EQ(TierOf(a), Tier::kHost);
  EXPECT_EQ(cache_->EvictableBytes(slot()), 2 * kUnit);
  bool promoted = true;
  EXPECT_THAT(Use(a, &promoted), HoldsChar('a'));
  EXPECT_FALSE(promoted);
  Put('c');
  EXPECT_EQ(ReasonGone(b), kReasonHandleEvicted);
  EXPECT_EQ(ReasonGone(a), "");
  EXPECT_EQ(HostUnits(), 2u);
  EXPECT_EQ(Evictions("host", "pressure"), 1);
  EXPECT_EQ(Metric("crout_cache_hits_total{tier=\"host\"}"), 1);
}

}  // namespace
}  // namespace crout::tiered_store_test
