// SPDX-License-Identifier: Apache-2.0

// Tests that operations of a tenant on its files do not stall those of other tenants.
#include <atomic>
#include <thread>

#include "tests/server/engine/cache/store_tier_fixture.h"
#include "tests/support/timing/eventually.h"

namespace crout::store_tenants_test {
namespace {

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
  // Returns true if bob can store a durable factor while removals are held.
  bool AnotherTenantStores() {
    InsertOptions options = Options(/*durable=*/true);
    options.tenant = "bob";
    std::atomic<bool> done = false;
    std::thread writing([&] {
      EXPECT_OK(TryPut('b', options));
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
  InsertOptions options = Options(/*durable=*/true);
  options.tenant = "bob";
  std::thread writing([&] { EXPECT_OK(TryPut('b', options)); });
  failpoints_.Release(kRemove);
  writing.join();
  EXPECT_EQ(Files(), 2u);
}

}  // namespace
}  // namespace crout::store_tenants_test
