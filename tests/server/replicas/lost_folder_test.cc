// SPDX-License-Identifier: Apache-2.0

// Tests the cache of a daemon that loses the folder of its stored factors to another daemon.
#include <memory>
#include <set>
#include <string>

#include "server/engine/error.h"
#include "tests/server/replicas/shared_cache_fixture.h"

namespace crout::lost_folder_test {
namespace {

using ::crout::testing::FailsWith;

using LostFolderTest = SharedCacheTest;

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
  const auto second = Connect("b", std::make_shared<testing::Connection>());
  LoseTo(*second, folder);
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
  const absl::Status failed = TryPut(true).status();
  EXPECT_THAT(failed, FailsWith(absl::StatusCode::kUnavailable, "stored"));
  EXPECT_EQ(RetryAfterOf(failed), 1);
  EXPECT_EQ(cache_->size(), 0u);
  EXPECT_TRUE(files_->state().degraded);
  connection_->down = false;
  leases_->Renew();
  EXPECT_OK(TryPut(true));
  EXPECT_FALSE(files_->state().degraded);
}

}  // namespace
}  // namespace crout::lost_folder_test
