// SPDX-License-Identifier: Apache-2.0

// Tests that operations of a tenant on its files, and a storage that hangs, do not stall others.
#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "server/engine/error.h"
#include "tests/server/engine/cache/store_tier_fixture.h"
#include "tests/support/timing/eventually.h"

namespace crout::store_tenants_test {
namespace {

using ::crout::testing::FailsWith;

// The failpoint kRemove can hold the removals of this storage alone.
class StoreTenantsTest : public StoreTierTest {
 protected:
  static constexpr const char* kRemove = "store.remove";

  // Releases the factor and holds the thread that removes its file.
  void HoldRemovalOf(const Handle& handle) {
    failpoints_.Hold(kRemove);
    EXPECT_OK(cache_->Release(kTenant, handle));
    failpoints_.AwaitReached(kRemove);
  }
  static InsertOptions OptionsOfBob(bool durable) {
    InsertOptions options = Options(durable);
    options.tenant = "bob";
    return options;
  }
  // Returns true if bob can store a durable factor while removals are held.
  bool AnotherTenantStores() {
    std::atomic<bool> done = false;
    std::thread writing([&] {
      EXPECT_OK(TryPut('b', OptionsOfBob(/*durable=*/true)));
      done = true;
    });
    const bool in_time = testing::Eventually([&] { return done.load(); });
    failpoints_.Release(kRemove);
    writing.join();
    return in_time;
  }
};

INSTANTIATE_TEST_SUITE_P(Storages, StoreTenantsTest,
                         ::testing::Values(testing::StorageKind::kDirectory),
                         [](const auto& info) { return testing::NameOfKind(info.param); });

TEST_P(StoreTenantsTest, AWriteDoesNotWaitForRemovalsOfAnotherTenant) {
  StartWithStore(/*device_units=*/4, /*host_units=*/4);
  HoldRemovalOf(Put('a', /*durable=*/true));
  EXPECT_TRUE(AnotherTenantStores());
}

TEST_P(StoreTenantsTest, AWriteWaitsForRemovalsIfTheStoreHasNoOtherSpace) {
  StartWithStore(/*device_units=*/4, /*host_units=*/4, /*max_bytes=*/75'000);  // two files
  Put('c', /*durable=*/true);
  HoldRemovalOf(Put('a', /*durable=*/true));
  std::thread writing([&] { EXPECT_OK(TryPut('b', OptionsOfBob(/*durable=*/true))); });
  failpoints_.Release(kRemove);
  writing.join();
  EXPECT_EQ(Files(), 2u);
}

TEST_P(StoreTenantsTest, ASoftQuotaIsTheShareOfTheStore) {
  StartWithStore(/*device_units=*/2, /*host_units=*/2);
  const Handle durable = Put('a', /*durable=*/true);
  const size_t file = files_->budget().reserved();
  ASSERT_OK(cache_->Release(kTenant, durable));
  StartWithStore(/*device_units=*/2, /*host_units=*/2, 4 * file);
  QuotaLimits limits;
  limits.store_bytes = static_cast<int64_t>(2 * file);
  limits.soft = true;
  quotas_.Set({.defaults = {}, .tenants = {{std::string(kTenant), limits}}});
  const auto files_of = [&](std::string_view tenant) {
    files_->AwaitDiscards();
    return static_cast<size_t>(loads_.Of(tenant).bytes[static_cast<size_t>(Tier::kStore)]) / file;
  };
  const auto put = [&](int count, const InsertOptions& options) {
    for (int i = 0; i < count; ++i) EXPECT_OK(TryPut('x', options));
  };
  put(8, OptionsOfBob(/*durable=*/false));
  EXPECT_EQ(files_of("bob"), 4u) << "the space is lent";
  put(8, Options(/*durable=*/false));
  EXPECT_EQ(files_of(kTenant), 2u);
  EXPECT_EQ(files_of("bob"), 2u);
  put(8, OptionsOfBob(/*durable=*/false));
  EXPECT_EQ(files_of(kTenant), 2u);
  EXPECT_EQ(files_of("bob"), 2u);
}

// The writes of this storage can be held, and time passes only by Advance().
class HangingStoreTest : public StoreTenantsTest {
 protected:
  static constexpr const char* kWrite = "store.write";

  // Runs `call`, and lets the time limit of its write pass while the disk hangs.
  void HangIn(const std::function<void()>& call) {
    const int reached = failpoints_.reached(kWrite);
    failpoints_.Hold(kWrite);
    std::thread calling(call);
    failpoints_.AwaitReached(kWrite, reached + 1);
    Advance(absl::Seconds(70));
    calling.join();
  }
};

INSTANTIATE_TEST_SUITE_P(Storages, HangingStoreTest,
                         ::testing::Values(testing::StorageKind::kDirectory),
                         [](const auto& info) { return testing::NameOfKind(info.param); });

TEST_P(HangingStoreTest, ADurableCallEndsAndItsWriteKeepsTheMemory) {
  StartWithStore(/*device_units=*/0, /*host_units=*/8, kLimit, {DeviceKind::kHost});
  const Handle other = Put('b', /*durable=*/false);
  const size_t before = pool_->host_budget().reserved();
  HangIn([this] {
    const absl::Status status = TryPut('a', Options(/*durable=*/true)).status();
    EXPECT_THAT(status, FailsWith(absl::StatusCode::kUnavailable, "does not complete a write"));
    EXPECT_EQ(ReasonOf(status), kReasonStoreFailed);
    EXPECT_TRUE(RetryAfterOf(status).has_value());
  });
  EXPECT_TRUE(files_->state().degraded);
  EXPECT_GT(pool_->host_budget().reserved(), before) << "the write still reads the factor";
  EXPECT_OK(Touch(other));
  EXPECT_THAT(cache_->CheckDurable("cache.durable", "bob"),
              FailsWith(absl::StatusCode::kUnavailable, "does not complete a write"));
  failpoints_.Release(kWrite);
  EXPECT_EQ(Files(), 0u) << "the file of a call that has failed";
  EXPECT_EQ(pool_->host_budget().reserved(), before);
}

TEST_P(HangingStoreTest, AnEvictionEndsAndItsWriteKeepsTheMemory) {
  StartWithStore(/*device_units=*/1, /*host_units=*/2);
  const Handle first = Put('a', /*durable=*/false);
  Put('b', /*durable=*/false);
  Put('c', /*durable=*/false);
  ASSERT_EQ(TierOf(first), Tier::kHost);
  HangIn([this] { Put('d', /*durable=*/false); });
  EXPECT_EQ(ReasonGone(first), kReasonHandleEvicted);
  const size_t held = pool_->host_budget().reserved();
  failpoints_.Release(kWrite);
  EXPECT_EQ(Files(), 0u);
  EXPECT_LT(pool_->host_budget().reserved(), held) << "the write kept the memory until its end";
}

}  // namespace
}  // namespace crout::store_tenants_test
