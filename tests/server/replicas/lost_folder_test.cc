// SPDX-License-Identifier: Apache-2.0

// Tests the cache of a daemon that loses the folder of its stored factors to another daemon.
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"
#include "server/replicas/shared_store.h"
#include "tests/server/engine/cache/cache_fixture.h"
#include "tests/support/fakes/memory_s3.h"
#include "tests/support/status_matchers.h"

namespace crout::lost_folder_test {
namespace {

using ::crout::testing::FailsWith;

constexpr std::chrono::hours kDuration{3};
constexpr absl::Duration kToAdoption = absl::Minutes(241);

class LostFolderTest : public CacheTest {
 protected:
  // Connects a daemon to the bucket.
  std::unique_ptr<SharedStore> Connect(const std::string& name,
                                       std::shared_ptr<testing::Connection> connection) {
    auto store =
        SharedStore::Open(std::make_unique<testing::MemoryS3>(bucket_, std::move(connection)),
                          {.prefix = "", .name = name, .duration = kDuration});
    EXPECT_OK(store);
    return *std::move(store);
  }
  void StartWithStore() {
    std::unique_ptr<SharedStore> store = Connect("a", connection_);
    leases_ = &store->leases();
    std::vector<FoundFactor> found;
    auto files = FactorStore::Open(std::move(store), {}, &found);
    ASSERT_OK(files);
    files_ = *std::move(files);
    Start(/*device_units=*/4, /*host_units=*/4);
    cache_->Restore(std::move(found));
  }
  absl::StatusOr<Handle> TryPut(bool durable) {
    InsertOptions options;
    options.tenant = kTenant;
    options.lease = absl::Hours(1000);
    options.durable = durable;
    options.request_id = durable ? "durable" : "";
    CROUT_ASSIGN_OR_RETURN(NewFactor factor, Make('a'));
    CROUT_RETURN_IF_ERROR(cache_->StoreForInsert(factor, options));
    CROUT_ASSIGN_OR_RETURN(const FactorInfo info, cache_->Insert(std::move(factor), options));
    return info.handle;
  }

  const std::shared_ptr<testing::MemoryBucket> bucket_ = std::make_shared<testing::MemoryBucket>();
  const std::shared_ptr<testing::Connection> connection_ = std::make_shared<testing::Connection>();
  FolderLeases* leases_ = nullptr;
};

TEST_F(LostFolderTest, StoredFactorsNeedTheLease) {
  StartWithStore();
  ASSERT_OK_AND_ASSIGN(const Handle durable, TryPut(true));
  ASSERT_OK_AND_ASSIGN(const Handle other, TryPut(false));
  connection_->down = true;
  Advance(absl::Hours(3));
  const absl::Status suspended = Touch(durable);
  EXPECT_THAT(suspended, FailsWith(absl::StatusCode::kUnavailable, "Try again"));
  EXPECT_EQ(ReasonOf(suspended), kReasonStoreFailed);
  EXPECT_TRUE(RetryAfterOf(suspended).has_value());
  EXPECT_EQ(cache_->ClaimRequest(kTenant, "durable").status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_OK(Touch(other));
  connection_->down = false;
  leases_->Renew();
  EXPECT_OK(Touch(durable));
}

TEST_F(LostFolderTest, ALostFolderTakesItsStoredFactors) {
  StartWithStore();
  ASSERT_OK_AND_ASSIGN(const Handle durable, TryPut(true));
  ASSERT_OK_AND_ASSIGN(const Handle other, TryPut(false));
  const std::string folder = files_->home();
  EXPECT_EQ(cache_->FolderOf(kTenant, durable), folder);
  EXPECT_EQ(cache_->FolderOf(kTenant, other), folder);
  EXPECT_EQ(cache_->Folders(), std::set<std::string>{folder});
  connection_->down = true;
  const auto second = Connect("b", std::make_shared<testing::Connection>());
  Advance(kToAdoption);
  second->leases().Renew();
  ASSERT_OK(second->leases().Scan());
  ASSERT_OK(second->leases().Adopt(folder));
  connection_->down = false;
  leases_->Renew();
  ASSERT_EQ(leases_->Lost(), std::vector<std::string>{folder});
  EXPECT_EQ(Touch(durable).code(), absl::StatusCode::kUnavailable);
  cache_->DropFolder(folder);
  Sweep();  // waits until another thread has freed the device's memory and discarded the file
  files_->AwaitDiscards();
  EXPECT_EQ(ReasonGone(durable), kReasonServerRestarted);
  EXPECT_EQ(Metric("crout_cache_evictions_total{reason=\"moved\",tier=\"device\"}"), 1);
  EXPECT_OK(Touch(other));
  EXPECT_EQ(cache_->FolderOf(kTenant, durable), "");
  EXPECT_EQ(cache_->FolderOf(kTenant, other), files_->home());
  EXPECT_EQ(cache_->Folders(), std::set<std::string>{files_->home()});
  EXPECT_EQ(files_->budget().reserved(), 0u);
  EXPECT_EQ(files_->state().unusable, 0);
  ASSERT_OK_AND_ASSIGN(const ObjectList list, second->List(folder));
  EXPECT_EQ(list.objects.size(), 1u);

  // The daemon has a new folder.
  ASSERT_NE(files_->home(), folder);
  ASSERT_OK_AND_ASSIGN(const Handle next, TryPut(true));
  EXPECT_OK(Touch(next));
}

TEST_F(LostFolderTest, AnInsertionIntoALostFolderFails) {
  StartWithStore();
  connection_->down = true;
  Advance(absl::Hours(3));
  EXPECT_THAT(TryPut(true), FailsWith(absl::StatusCode::kUnavailable, "stored"));
  EXPECT_EQ(cache_->size(), 0u);
}

}  // namespace
}  // namespace crout::lost_folder_test
