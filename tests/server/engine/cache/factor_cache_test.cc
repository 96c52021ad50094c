// SPDX-License-Identifier: Apache-2.0

// Tests handles, leases, versions, request IDs and lists. tiered_store_test.cc covers the tiers.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/util/clock.h"
#include "server/engine/error.h"
#include "tests/server/engine/cache/cache_fixture.h"
#include "tests/support/status_matchers.h"

namespace crout::factor_cache_test {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

class FactorCacheTest : public CacheTest {
 protected:
  FactorCacheTest() { Start(/*device_units=*/8, /*host_units=*/8); }

  double Hits(const char* tier) {
    return Metric(std::string("crout_cache_hits_total{tier=\"") + tier + "\"}");
  }
  double Misses(const char* reason) {
    return Metric(std::string("crout_cache_misses_total{reason=\"") + reason + "\"}");
  }
  double Evictions(const char* reason) {
    return Metric(std::string("crout_cache_evictions_total{reason=\"") + reason +
                  "\",tier=\"device\"}");
  }
  std::vector<int64_t> Listed(std::string_view tenant, std::string_view name, int64_t before,
                              size_t limit, int64_t* next) {
    std::vector<int64_t> ids;
    for (const FactorInfo& info : cache_->List(tenant, name, before, limit, next)) {
      ids.push_back(info.summary.n);
    }
    return ids;
  }
};

TEST_F(FactorCacheTest, DescribesAnInsertedFactor) {
  ASSERT_OK_AND_ASSIGN(NewFactor factor, Make('a'));
  factor.nnz = 17;
  factor.timings.factor = 0.5;
  const absl::Time start = WallNow();
  ASSERT_OK_AND_ASSIGN(
      const FactorInfo info,
      cache_->Insert(
          std::move(factor),
          {.tenant = "alice", .name = "heat", .request_id = "", .lease = absl::Minutes(10)}));
  ASSERT_OK_AND_ASSIGN(const FactorInfo again, cache_->Describe(kTenant, info.handle));
  for (const FactorInfo& i : {info, again}) {
    EXPECT_EQ(i.tenant, "alice");
    EXPECT_EQ(i.name, "heat");
    EXPECT_EQ(i.version, 1);
    EXPECT_EQ(i.summary.n, 'a');
    EXPECT_EQ(i.device, "cuda:0");
    EXPECT_THAT(i.nnz, Optional(17));
    EXPECT_FALSE(i.has_matrix);
    EXPECT_EQ(i.tier, Tier::kDevice);
    EXPECT_EQ(i.bytes, kUnit);
    EXPECT_GE(i.create_time, start);
    EXPECT_LE(i.create_time, WallNow());
    EXPECT_EQ(i.lease_expire_time, i.create_time + absl::Minutes(10));
    EXPECT_EQ(i.timings.factor, 0.5);
  }
  EXPECT_EQ(cache_->size(), 1u);
  EXPECT_EQ(cache_->tiers()[0].entries, 1);
  EXPECT_EQ(cache_->tiers()[0].bytes, static_cast<int64_t>(kUnit));
}

TEST_F(FactorCacheTest, ReservesOnlyTheBytesOfTheFactor) {
  ASSERT_OK_AND_ASSIGN(NewFactor factor, Make('a'));
  auto more = factor.slot->budget->TryReserve(2 * kUnit);
  ASSERT_TRUE(more);
  factor.reservation.Absorb(*std::move(more));
  ASSERT_OK(
      cache_->Insert(std::move(factor),
                     {.tenant = "alice", .name = "", .request_id = "", .lease = absl::Hours(1)}));
  EXPECT_EQ(DeviceUnits(), 1u);
}

TEST_F(FactorCacheTest, AcquireFindsTheFactorAndCounts) {
  const Handle handle = Put('a');
  ASSERT_OK_AND_ASSIGN(FactorCache::Pin pin, cache_->Acquire(kTenant, handle));
  EXPECT_EQ(pin.summary().n, 'a');
  EXPECT_EQ(pin.version(), 1);
  EXPECT_EQ(&pin.slot(), &slot());
  EXPECT_EQ(pin.promotion_bytes(), 0u);
  bool promoted = true;
  EXPECT_THAT(UsePinned(pin, &promoted), ::testing::Truly([](const auto& v) { return *v == 'a'; }));
  EXPECT_FALSE(promoted);
  EXPECT_EQ(Hits("device"), 1);
  EXPECT_EQ(Hits("host"), 0);
}

TEST_F(FactorCacheTest, OnlyTheOwnerGetsTheCauseOfARemoval) {
  const Handle living = Put('a');
  EXPECT_EQ(ReasonGone(living, "bob"), kReasonHandleUnknown);
  EXPECT_EQ(ReasonGone(Handle::Random()), kReasonHandleUnknown);
  EXPECT_THAT(cache_->Acquire("bob", living).status(),
              testing::FailsWith(absl::StatusCode::kNotFound, "no such handle"));
  EXPECT_EQ(Misses("other_tenant"), 1);
  EXPECT_FALSE(cache_->Acquire(kTenant, Handle::Random()).ok());
  EXPECT_EQ(Misses("unknown"), 1);
  EXPECT_FALSE(cache_->Release("bob", living).ok());
  EXPECT_FALSE(cache_->Renew("bob", living, absl::Hours(2)).ok());
  EXPECT_OK(cache_->Release(kTenant, living));
  EXPECT_EQ(ReasonGone(living), kReasonHandleReleased);
  EXPECT_EQ(ReasonGone(living, "bob"), kReasonHandleUnknown);
  EXPECT_FALSE(Touch(living).ok());
  EXPECT_EQ(Misses("released"), 1);
}

TEST_F(FactorCacheTest, AReleasedFactorLivesUntilItsPinsEnd) {
  const Handle handle = Put('a');
  {
    ASSERT_OK_AND_ASSIGN(FactorCache::Pin first, cache_->Acquire(kTenant, handle));
    std::optional<FactorCache::Pin> second;
    {
      ASSERT_OK_AND_ASSIGN(FactorCache::Pin other, cache_->Acquire(kTenant, handle));
      second = std::move(other);
    }
    EXPECT_OK(cache_->Release(kTenant, handle));
    EXPECT_EQ(cache_->size(), 0u);
    EXPECT_EQ(ReasonGone(handle), kReasonHandleReleased);
    ASSERT_OK_AND_ASSIGN(const char fill, UsePinned(first));
    EXPECT_EQ(fill, 'a');
    second.reset();
    EXPECT_EQ(DeviceUnits(), 1u);
    EXPECT_EQ(device().counting_memory().live_bytes(), kUnitData);
  }
  EXPECT_EQ(DeviceUnits(), 0u);
  EXPECT_EQ(device().counting_memory().live_bytes(), 0u);
  EXPECT_EQ(Evictions("released"), 1);
}

TEST_F(FactorCacheTest, EachCallSeesOneWholeVersionDuringReplace) {
  const Handle handle = Put('a');
  {
    ASSERT_OK_AND_ASSIGN(FactorCache::Pin old_pin, cache_->Acquire(kTenant, handle));
    ASSERT_OK_AND_ASSIGN(NewFactor next, Make('b', 2 * kUnit));
    ASSERT_OK_AND_ASSIGN(const FactorInfo info, cache_->Replace(kTenant, handle, std::move(next)));
    EXPECT_EQ(info.handle, handle);
    EXPECT_EQ(info.version, 2);
    EXPECT_EQ(info.bytes, 2 * kUnit);
    EXPECT_EQ(DeviceUnits(), 3u);
    ASSERT_OK_AND_ASSIGN(FactorCache::Pin new_pin, cache_->Acquire(kTenant, handle));
    EXPECT_EQ(new_pin.version(), 2);
    EXPECT_EQ(old_pin.version(), 1);
    ASSERT_OK_AND_ASSIGN(const char new_fill, UsePinned(new_pin));
    ASSERT_OK_AND_ASSIGN(const char old_fill, UsePinned(old_pin));
    EXPECT_EQ(new_fill, 'b');
    EXPECT_EQ(old_fill, 'a');
  }
  EXPECT_EQ(DeviceUnits(), 2u);
  EXPECT_EQ(Evictions("replaced"), 1);
  EXPECT_EQ(cache_->size(), 1u);
}

TEST_F(FactorCacheTest, ReplaceOfARemovedHandleReturnsTheNewFactor) {
  const Handle handle = Put('a');
  EXPECT_OK(cache_->Release(kTenant, handle));
  ASSERT_OK_AND_ASSIGN(NewFactor next, Make('b'));
  const auto replaced = cache_->Replace(kTenant, handle, std::move(next));
  EXPECT_THAT(ReasonOf(replaced.status()), Optional(std::string(kReasonHandleReleased)));
  EXPECT_EQ(DeviceUnits(), 0u);
  EXPECT_EQ(device().counting_memory().live_bytes(), 0u);
}

TEST_F(FactorCacheTest, ARequestIdBelongsToOneFactor) {
  const InsertOptions options{
      .tenant = "alice", .name = "", .request_id = "r1", .lease = absl::Minutes(1)};
  ASSERT_OK_AND_ASSIGN(auto first, cache_->ClaimRequest("alice", "r1"));
  EXPECT_FALSE(first.has_value());
  const absl::Status busy = cache_->ClaimRequest("alice", "r1").status();
  EXPECT_EQ(busy.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(ReasonOf(busy), Optional(std::string(kReasonRequestInProgress)));
  EXPECT_TRUE(RetryAfterOf(busy).has_value());
  ASSERT_OK_AND_ASSIGN(auto others, cache_->ClaimRequest("bob", "r1"));
  EXPECT_FALSE(others.has_value()) << "ids are the tenant's own";

  const Handle handle = Put('a', kUnit, 0, options);
  cache_->request_ids().Abandon("alice", "r1");  // no effect, because the request is completed
  ASSERT_OK_AND_ASSIGN(auto again, cache_->ClaimRequest("alice", "r1"));
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->handle, handle);

  Advance(absl::Minutes(1));  // expired, but not yet swept
  ASSERT_OK_AND_ASSIGN(auto after, cache_->ClaimRequest("alice", "r1"));
  EXPECT_FALSE(after.has_value());
  Sweep();
  EXPECT_FALSE(cache_->ClaimRequest("alice", "r1").ok()) << "the old factor's end ended the claim";
  cache_->request_ids().Abandon("alice", "r1");
  ASSERT_OK_AND_ASSIGN(auto free_again, cache_->ClaimRequest("alice", "r1"));
  EXPECT_FALSE(free_again.has_value());
}

TEST_F(FactorCacheTest, AReleaseFreesTheRequestId) {
  const Handle handle = Put(
      'a', kUnit, 0, {.tenant = "alice", .name = "", .request_id = "r1", .lease = absl::Hours(1)});
  EXPECT_OK(cache_->Release(kTenant, handle));
  ASSERT_OK_AND_ASSIGN(auto claim, cache_->ClaimRequest("alice", "r1"));
  EXPECT_FALSE(claim.has_value());
}

TEST_F(FactorCacheTest, ListsNewestFirstInPages) {
  for (const char id : {'a', 'b', 'c', 'd', 'e'}) {
    Put(id, kUnit, 0,
        {.tenant = id == 'c' ? "bob" : "alice",
         .name = id < 'd' ? "x" : "y",
         .request_id = "",
         .lease = id == 'b' ? absl::Minutes(1) : absl::Hours(1)});
  }
  int64_t next = -1;
  EXPECT_THAT(Listed("alice", "", 0, 10, &next), ElementsAre('e', 'd', 'b', 'a'));
  EXPECT_EQ(next, 0);
  EXPECT_THAT(Listed("alice", "", 0, 4, &next), ElementsAre('e', 'd', 'b', 'a'));
  EXPECT_EQ(next, 0) << "nothing is left";
  EXPECT_THAT(Listed("alice", "", 0, 2, &next), ElementsAre('e', 'd'));
  ASSERT_NE(next, 0);
  Put('f');  // does not shift the next page
  EXPECT_THAT(Listed("alice", "", next, 2, &next), ElementsAre('b', 'a'));
  EXPECT_EQ(next, 0);
  EXPECT_THAT(Listed("alice", "x", 0, 10, &next), ElementsAre('b', 'a'));
  EXPECT_THAT(Listed("bob", "", 0, 10, &next), ElementsAre('c'));
  EXPECT_THAT(Listed("carol", "", 0, 10, &next), ElementsAre());
  Advance(absl::Minutes(1));
  EXPECT_THAT(Listed("alice", "x", 0, 10, &next), ElementsAre('a')) << "b's lease is over";
}

TEST_F(FactorCacheTest, FactorsWithoutACopyAreLostWithTheirDevice) {
  const Handle handle = Put('a');
  device().BreakDown();
  EXPECT_EQ(ReasonGone(handle), kReasonDeviceLost);
  EXPECT_FALSE(Touch(handle).ok());
  EXPECT_EQ(Misses("device_lost"), 1);
  Sweep();
  EXPECT_EQ(cache_->size(), 0u);
  EXPECT_EQ(ReasonGone(handle), kReasonDeviceLost);
  EXPECT_EQ(Evictions("device_lost"), 1);
  EXPECT_EQ(DeviceUnits(), 0u);
}

TEST_F(FactorCacheTest, EmptyFactorsAreCached) {
  ASSERT_OK_AND_ASSIGN(NewFactor factor, Make('\0', FactorCache::kEntryBytes));
  ASSERT_OK_AND_ASSIGN(
      const FactorInfo info,
      cache_->Insert(std::move(factor),
                     {.tenant = "alice", .name = "", .request_id = "", .lease = absl::Hours(1)}));
  EXPECT_TRUE(info.has_matrix);
  EXPECT_EQ(info.bytes, FactorCache::kEntryBytes);
  EXPECT_OK(Touch(info.handle));
  EXPECT_OK(cache_->Release(kTenant, info.handle));
}

// Records how many bytes are reserved in the budget when memory is freed.
class WatchedMemory final : public MemoryResource {
 public:
  explicit WatchedMemory(const MemoryBudget& budget) : budget_(budget) {}
  std::optional<size_t> reserved_at_release() const { return reserved_; }

 protected:
  absl::StatusOr<void*> DoAllocate(size_t bytes) override { return std::malloc(bytes); }
  void DoDeallocate(void* data, size_t) override {
    reserved_ = budget_.reserved();
    std::free(data);
  }

 private:
  const MemoryBudget& budget_;
  std::optional<size_t> reserved_;
};

TEST_F(FactorCacheTest, MemoryIsFreedBeforeItsReservation) {
  WatchedMemory memory(*slot().budget);
  {
    NewFactor factor;
    ASSERT_OK_AND_ASSIGN(factor.reservation, cache_->ReserveOnDevice(slot(), kUnit));
    ASSERT_OK_AND_ASSIGN(Buffer lu, memory.Allocate(kUnitData));
    factor.factorization.parts.Add(kLuPart, PartKind::kFactor, std::move(lu));
  }
  EXPECT_EQ(memory.reserved_at_release(), kUnit);
}

TEST_F(FactorCacheTest, EmptyFactorsUseTheBudget) {
  const Handle first = Put('\0', FactorCache::kEntryBytes);
  const size_t fit = slot().budget->limit() / FactorCache::kEntryBytes;
  const size_t host_fit = pool_->host_budget().limit() / FactorCache::kEntryBytes;
  for (size_t i = 0; i < fit + host_fit; ++i) Put('\0', FactorCache::kEntryBytes);
  EXPECT_LE(cache_->size(), fit + host_fit);
  EXPECT_EQ(ReasonGone(first), kReasonHandleEvicted);
}

}  // namespace
}  // namespace crout::factor_cache_test
