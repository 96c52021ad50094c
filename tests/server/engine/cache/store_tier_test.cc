// SPDX-License-Identifier: Apache-2.0

// Tests the tier of factors in files: evictions from host memory, durable factors, restarts, and
// failing disks.
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"
#include "tests/server/engine/cache/store_tier_fixture.h"
#include "tests/support/status_matchers.h"

namespace crout::store_tier_test {
namespace {

using ::crout::testing::FailsWith;
using ::testing::Optional;

// Matches a StatusOr with this value.
MATCHER_P(Holds, value, "") {
  if (!arg.ok()) *result_listener << arg.status().ToString();
  return arg.ok() && *arg == value;
}

INSTANTIATE_TEST_SUITE_P(Storages, StoreTierTest,
                         ::testing::Values(testing::StorageKind::kDirectory,
                                           testing::StorageKind::kSealedDirectory,
                                           testing::StorageKind::kBucket),
                         [](const auto& info) { return testing::NameOfKind(info.param); });

TEST_P(StoreTierTest, EvictedFactorsMoveToFilesAndBack) {
  StartWithStore(/*device_units=*/2, /*host_units=*/2);
  std::vector<Handle> handles;
  for (const char fill : {'a', 'b', 'c', 'd', 'e', 'f', 'g'}) handles.push_back(Put(fill));
  EXPECT_EQ(TierOf(handles.back()), Tier::kDevice);
  EXPECT_EQ(TierOf(handles.front()), Tier::kStore);
  EXPECT_EQ(cache_->tiers()[2].entries, static_cast<int64_t>(Files()));
  EXPECT_GE(Files(), 3u);
  EXPECT_EQ(cache_->size(), 7u);
  EXPECT_GT(loads_.Of(kTenant).bytes[2], 0);
  EXPECT_EQ(loads_.Of(kTenant).bytes_in_flight(), 0);
  for (size_t i = 0; i < handles.size(); ++i) {
    bool promoted = false;
    EXPECT_THAT(Use(handles[i], &promoted), Holds(static_cast<char>('a' + i)));
    EXPECT_TRUE(promoted || i >= 5);
    EXPECT_EQ(TierOf(handles[i]), Tier::kDevice);
  }
  for (const Handle& handle : handles) EXPECT_OK(cache_->Release(kTenant, handle));
  Sweep();
  EXPECT_EQ(Files(), 0u);
  EXPECT_EQ(files_->budget().reserved(), 0u);
  EXPECT_EQ(slot().budget->reserved(), 0u);
  EXPECT_EQ(pool_->host_budget().reserved(), 0u);
}

TEST_P(StoreTierTest, FactorsOfTheHostDeviceMoveToFiles) {
  StartWithStore(/*device_units=*/0, /*host_units=*/2, kLimit, {DeviceKind::kHost});
  const Handle first = Put('a');
  PushOutOf(Tier::kHost, first);
  EXPECT_EQ(TierOf(first), Tier::kStore);
  EXPECT_THAT(Use(first), Holds('a'));
  EXPECT_EQ(TierOf(first), Tier::kHost);
}

TEST_P(StoreTierTest, ReadsFactorsInFilesForDownloads) {
  StartWithStore(/*device_units=*/1, /*host_units=*/3);
  const Handle first = Put('a');
  PushOutOf(Tier::kHost, first);
  ASSERT_EQ(TierOf(first), Tier::kStore);
  ASSERT_OK_AND_ASSIGN(FactorCache::Pin pin, cache_->Acquire(kTenant, first));
  char seen = 0;
  const auto read = [&](const FactorParts& parts) {
    seen = static_cast<char>(*parts[kLuPart].data());
    return absl::OkStatus();
  };
  EXPECT_THAT(pin.ReadOnHost(read), Holds(true));
  EXPECT_EQ(seen, 'a');
  EXPECT_EQ(TierOf(first), Tier::kStore);
}

TEST_P(StoreTierTest, AFullStoreDropsFactorsThatAreNotDurable) {
  StartWithStore(/*device_units=*/1, /*host_units=*/2, /*max_bytes=*/40'000);
  const Handle first = Put('a');
  for (const char fill : {'b', 'c', 'd', 'e', 'f'}) Put(fill);
  EXPECT_EQ(ReasonGone(first), kReasonHandleEvicted);
  EXPECT_EQ(Files(), 1u);
  EXPECT_EQ(cache_->tiers()[2].entries, 1);
  EXPECT_LE(files_->budget().reserved(), files_->budget().limit());
}

TEST_P(StoreTierTest, DurableFactorsAreInFilesAtOnce) {
  StartWithStore(/*device_units=*/4, /*host_units=*/4);
  const Handle durable = Put('a', /*durable=*/true);
  EXPECT_EQ(TierOf(durable), Tier::kDevice);
  EXPECT_TRUE(Describe(durable).durable);
  EXPECT_EQ(Files(), 1u);
  EXPECT_THAT(Use(durable), Holds('a'));
  EXPECT_EQ(Files(), 1u);
  EXPECT_OK(cache_->Release(kTenant, durable));
  Sweep();
  EXPECT_EQ(Files(), 0u);
}

TEST_P(StoreTierTest, DurableFactorsAreNeverEvicted) {
  StartWithStore(/*device_units=*/1, /*host_units=*/3, /*max_bytes=*/75'000);
  const Handle durable = Put('a', /*durable=*/true);
  for (const char fill : {'b', 'c', 'd', 'e', 'f', 'g', 'h'}) Put(fill);
  EXPECT_EQ(TierOf(durable), Tier::kStore);
  EXPECT_THAT(Use(durable), Holds('a'));
  // Two durable factors fill the store.
  const Handle second = Put('i', /*durable=*/true);
  const absl::Status full = TryPut('j', Options(/*durable=*/true)).status();
  EXPECT_THAT(full, FailsWith(absl::StatusCode::kResourceExhausted, "--max-store-bytes"));
  EXPECT_THAT(ReasonOf(full), Optional(std::string(kReasonStoreFull)));
  EXPECT_THAT(Use(durable), Holds('a'));
  EXPECT_THAT(Use(second), Holds('i'));
  EXPECT_EQ(Files(), 2u);
}

TEST_P(StoreTierTest, FactorsSurviveARestart) {
  StartWithStore(/*device_units=*/1, /*host_units=*/2);
  const Handle evicted = Put('a');
  PushOutOf(Tier::kHost, evicted);
  InsertOptions options = Options(/*durable=*/true);
  options.name = "pressure";
  options.request_id = "id 1";
  ASSERT_OK_AND_ASSIGN(const Handle durable, TryPut('c', options));
  ASSERT_EQ(TierOf(evicted), Tier::kStore);
  const FactorInfo before = Describe(durable);
  const Handle lost = Put('d');

  StartWithStore(/*device_units=*/1, /*host_units=*/4);
  const FactorInfo after = Describe(durable);
  EXPECT_EQ(after.tier, Tier::kStore);
  EXPECT_TRUE(after.durable);
  EXPECT_FALSE(Describe(evicted).durable);
  EXPECT_EQ(after.name, "pressure");
  EXPECT_EQ(after.bytes, before.bytes);
  EXPECT_EQ(after.summary.algorithm, "getrf");
  EXPECT_EQ(absl::ToUnixMicros(after.create_time), absl::ToUnixMicros(before.create_time));
  EXPECT_GE(after.lease_expire_time, before.lease_expire_time - absl::Seconds(1));
  int64_t next = 0;
  EXPECT_EQ(cache_->List(kTenant, "", 0, 10, &next).front().handle, durable);
  EXPECT_EQ(cache_->List(kTenant, "pressure", 0, 10, &next).size(), 1u);
  ASSERT_OK_AND_ASSIGN(const auto repeated, cache_->ClaimRequest(kTenant, "id 1"));
  ASSERT_TRUE(repeated.has_value());
  EXPECT_EQ(repeated->handle, durable);
  EXPECT_THAT(Use(durable), Holds('c'));
  EXPECT_THAT(Use(evicted), Holds('a'));
  EXPECT_EQ(cache_->Acquire("bob", durable).status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(ReasonGone(lost), "");
  EXPECT_OK(cache_->Release(kTenant, durable));
  EXPECT_EQ(ReasonGone(durable), kReasonHandleReleased);
}

TEST_P(StoreTierTest, ARestartKeepsTheLaterEndOfALease) {
  StartWithStore(1, 1);
  const Handle durable = Put('a', /*durable=*/true);
  ASSERT_OK(cache_->Renew(kTenant, durable, absl::Hours(24)));
  const absl::Time end = Describe(durable).lease_expire_time;
  StartWithStore(1, 1);
  EXPECT_LE(absl::AbsDuration(Describe(durable).lease_expire_time - end), absl::Seconds(2));
  Advance(absl::Hours(25));
  Sweep();
  EXPECT_EQ(ReasonGone(durable), kReasonHandleExpired);
  EXPECT_EQ(Files(), 0u);
}

TEST_P(StoreTierTest, ALifeThatEndedIsNotRestored) {
  StartWithStore(1, 1);
  InsertOptions options = Options(/*durable=*/true);
  options.life = absl::Hours(2);
  ASSERT_OK(TryPut('a', options));
  Advance(absl::Hours(3));
  StartWithStore(1, 1);
  EXPECT_EQ(cache_->size(), 0u);
  EXPECT_EQ(Files(), 0u);
}

TEST_P(StoreTierTest, AReplacedVersionReplacesTheFile) {
  StartWithStore(4, 4);
  const Handle durable = Put('a', /*durable=*/true);
  ASSERT_OK(Replace(durable, 'b'));
  EXPECT_EQ(Describe(durable).version, 2);
  EXPECT_EQ(Files(), 1u);
  StartWithStore(4, 4);
  EXPECT_EQ(Describe(durable).version, 2);
  EXPECT_THAT(Use(durable), Holds('b'));
  failpoints_.Fail(storage_->write_failpoint(), absl::UnavailableError("EIO"), 1);
  const absl::Status failed = Replace(durable, 'c');
  EXPECT_THAT(failed, FailsWith(absl::StatusCode::kUnavailable, "EIO"));
  EXPECT_THAT(ReasonOf(failed), Optional(std::string(kReasonStoreFailed)));
  EXPECT_THAT(Use(durable), Holds('b'));
}

TEST_P(StoreTierTest, AnEarlierVersionDoesNotReplaceALaterOne) {
  StartWithStore(4, 4);
  const Handle durable = Put('a', /*durable=*/true);
  ASSERT_OK_AND_ASSIGN(NewFactor slow, MakeStorable('b'));
  ASSERT_OK(cache_->StoreForReplace(slow, kTenant, durable));
  ASSERT_OK(Replace(durable, 'c'));
  ASSERT_OK_AND_ASSIGN(const FactorInfo info, cache_->Replace(kTenant, durable, std::move(slow)));
  EXPECT_EQ(info.version, 2);
  EXPECT_EQ(Describe(durable).version, 3);
  EXPECT_THAT(Use(durable), Holds('c'));
  EXPECT_EQ(Files(), 1u);
}

TEST_P(StoreTierTest, ADamagedFileIsQuarantined) {
  StartWithStore(4, 4);
  const Handle durable = Put('a', /*durable=*/true);
  StartWithStore(4, 4);
  FlipFile();
  EXPECT_THAT(Use(durable), FailsWith(absl::StatusCode::kDataLoss, "corrupt"));
  EXPECT_EQ(ReasonGone(durable), kReasonDataLoss);
  EXPECT_EQ(Files(), 0u);
  EXPECT_EQ(files_->state().quarantined, 1);
}

TEST_P(StoreTierTest, AFailedReadLeavesTheFactor) {
  StartWithStore(4, 4);
  const Handle durable = Put('a', /*durable=*/true);
  StartWithStore(4, 4);
  failpoints_.Fail(storage_->read_failpoint(), absl::UnavailableError("EIO"), 1);
  const absl::Status failed = Use(durable).status();
  EXPECT_THAT(failed, FailsWith(absl::StatusCode::kUnavailable, "EIO"));
  EXPECT_TRUE(RetryAfterOf(failed).has_value());
  EXPECT_THAT(Use(durable), Holds('a'));
}

TEST_P(StoreTierTest, AFileReplacesACorruptCopyInHostMemory) {
  StartWithStore(/*device_units=*/1, /*host_units=*/3);
  const Handle durable = Put('a', /*durable=*/true);
  PushOutOf(Tier::kDevice, durable);
  ASSERT_EQ(TierOf(durable), Tier::kHost);
  failpoints_.FlipBit("cache.host_copy", 77);
  EXPECT_THAT(Use(durable), Holds('a'));
  EXPECT_EQ(Files(), 1u);
}

TEST_P(StoreTierTest, AFailingDiskHarmsOnlyDurableFactors) {
  StartWithStore(/*device_units=*/1, /*host_units=*/2);
  failpoints_.Fail(storage_->write_failpoint(), absl::ResourceExhaustedError("the disk is full"));
  const absl::Status failed = TryPut('a', Options(/*durable=*/true)).status();
  EXPECT_THAT(failed, FailsWith(absl::StatusCode::kUnavailable, "the disk is full"));
  EXPECT_THAT(cache_->CheckDurable("cache.durable", kTenant),
              FailsWith(absl::StatusCode::kUnavailable, "the disk is full"));
  EXPECT_TRUE(files_->state().degraded);
  const Handle first = Put('a');
  PushOutOf(Tier::kHost, first);
  EXPECT_EQ(ReasonGone(first), kReasonHandleEvicted);
  const Handle last = Put('b');
  EXPECT_THAT(Use(last), Holds('b'));
  EXPECT_EQ(Files(), 0u);
}

TEST_P(StoreTierTest, AFactorInUseIsNotMovedToAFile) {
  StartWithStore(/*device_units=*/1, /*host_units=*/2);
  const Handle first = Put('a');
  Put('b');
  Put('c');
  ASSERT_EQ(TierOf(first), Tier::kHost);
  // The factor is used while its file is written.
  const char* const write = storage_->write_failpoint();
  const int reached = failpoints_.reached(write);
  failpoints_.Hold(write);
  std::thread eviction([this] { EXPECT_OK(Make('d').status()); });
  failpoints_.AwaitReached(write, reached + 1);
  ASSERT_OK_AND_ASSIGN(FactorCache::Pin pin, cache_->Acquire(kTenant, first));
  failpoints_.Release(write);
  eviction.join();
  EXPECT_EQ(TierOf(first), Tier::kHost);
  EXPECT_THAT(pin.ReadOnHost([](const FactorParts&) { return absl::OkStatus(); }), Holds(true));
}

TEST_P(StoreTierTest, FilesSurviveTheLossOfADevice) {
  StartWithStore(2, 2, kLimit, {DeviceKind::kCuda, DeviceKind::kCuda});
  const Handle durable = Put('a', /*durable=*/true);
  device(0).BreakDown();
  Sweep();
  EXPECT_EQ(TierOf(durable), Tier::kStore);
  ASSERT_OK_AND_ASSIGN(FactorCache::Pin pin, cache_->Acquire(kTenant, durable));
  EXPECT_EQ(&pin.slot(), &slot(1));
  EXPECT_THAT(UsePinned(pin), Holds('a'));
}

TEST_P(StoreTierTest, AnEntryOfAFileIsInHostMemoryAndNotInFlight) {
  StartWithStore(2, 2);
  const Handle durable = Put('a', /*durable=*/true);
  device(0).BreakDown();  // the factor moves from its device to its file
  Sweep();
  ASSERT_EQ(TierOf(durable), Tier::kStore);
  const auto expect_entry = [this] {
    EXPECT_EQ(slot().budget->reserved(), 0u);
    EXPECT_EQ(pool_->host_budget().reserved(), FactorCache::kEntryBytes);
    const TenantLoad load = loads_.Of(kTenant);
    EXPECT_EQ(load.bytes[1], static_cast<int64_t>(FactorCache::kEntryBytes));
    EXPECT_EQ(load.bytes_in_flight(), 0);
  };
  expect_entry();
  StartWithStore(2, 2);
  expect_entry();
  EXPECT_THAT(Use(durable), Holds('a'));
  EXPECT_EQ(loads_.Of(kTenant).bytes_in_flight(), 0);
  EXPECT_OK(cache_->Release(kTenant, durable));
  Sweep();
  EXPECT_EQ(pool_->host_budget().reserved(), 0u);
  EXPECT_EQ(loads_.Of(kTenant).bytes[1], 0);
}

TEST_P(StoreTierTest, FilesOfOtherDevicesStay) {
  StartWithStore(2, 2);
  const Handle durable = Put('a', /*durable=*/true);
  StartWithStore(2, 2, kLimit, {DeviceKind::kHost});
  EXPECT_EQ(cache_->size(), 0u);
  EXPECT_EQ(files_->state().unusable, 1);
  EXPECT_EQ(Files(), 1u);
  StartWithStore(2, 2);
  EXPECT_THAT(Use(durable), Holds('a'));
}

TEST_P(StoreTierTest, FilesCountInTheQuotaOfTheirTenant) {
  StartWithStore(/*device_units=*/8, /*host_units=*/8);
  const Handle first = Put('a', /*durable=*/true);
  const auto limit = static_cast<int64_t>(files_->budget().reserved());
  quotas_.Set({.defaults = {.store_bytes = limit}, .tenants = {}});
  const auto reason_of_second = [&] {
    return ReasonOf(TryPut('b', Options(/*durable=*/true)).status());
  };
  EXPECT_THAT(reason_of_second(), Optional(std::string(kReasonQuotaExceeded)));
  EXPECT_OK(TryPut('b', Options(/*durable=*/false)));

  StartWithStore(/*device_units=*/8, /*host_units=*/8);
  EXPECT_THAT(reason_of_second(), Optional(std::string(kReasonQuotaExceeded)))
      << "the restored file counts";
  ASSERT_OK(cache_->Release(kTenant, first));
  EXPECT_OK(TryPut('b', Options(/*durable=*/true)));
}

TEST_P(StoreTierTest, DurableFactorsNeedAStore) {
  Start(2, 2);
  EXPECT_THAT(cache_->CheckDurable("cache.durable", kTenant),
              FailsWith(absl::StatusCode::kFailedPrecondition, "--store=DIR"));
  EXPECT_FALSE(cache_->store_state().has_value());
}

}  // namespace
}  // namespace crout::store_tier_test
