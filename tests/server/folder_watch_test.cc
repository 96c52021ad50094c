// SPDX-License-Identifier: Apache-2.0

// Tests the adoption and the end of folders by a daemon, also while memory is short.
#include "server/folder_watch.h"

#include <memory>
#include <string>

#include "server/engine/error.h"
#include "tests/server/replicas/shared_cache_fixture.h"
#include "tests/support/memory/refused_allocations.h"

namespace crout::folder_watch_test {
namespace {

using Place = FolderHomes::Place;

class FolderWatchTest : public SharedCacheTest {
 protected:
  // Starts a daemon with a durable factor, which loses its folder to another daemon. That daemon
  // releases the folder.
  void StartAndLose() {
    StartWithStore();
    homes_ = std::make_unique<FolderHomes>(*leases_);
    folder_ = files_->home();
    ASSERT_OK_AND_ASSIGN(handle_, TryPut(true));
    second_ = Connect("b", std::make_shared<testing::Connection>());
    LoseTo(*second_, folder_);
    second_->leases().Release(folder_);
  }
  // Watches the folders once: the destructor waits for the first scan.
  void Watch() { FolderWatch watch(*shared_, *homes_, *files_, *cache_, analyses_); }
  LeaseState StateOfLease() { return DecodeLease(bucket_->Read("leases/" + folder_))->state; }

  std::unique_ptr<FolderHomes> homes_;
  std::unique_ptr<SharedStore> second_;
  std::string folder_;
  Handle handle_;
};

TEST_F(FolderWatchTest, DropsALostFolderBeforeItsAdoption) {
  StartAndLose();
  Watch();
  EXPECT_OK(Touch(handle_));
  EXPECT_EQ(cache_->FolderOf(kTenant, handle_), folder_);
  EXPECT_NE(files_->home(), folder_);
  EXPECT_EQ(homes_->counts().lost, 1);
  EXPECT_EQ(homes_->counts().adopted, 1);
  EXPECT_EQ(homes_->Find(folder_).place, Place::kHere);
  // The removals of the first ownership have no effect.
  files_->AwaitDiscards();
  EXPECT_EQ(shared_->List(folder_)->objects.size(), 1u);
}

TEST_F(FolderWatchTest, AnAdoptionWithAnUnreadableHeaderIsRepeated) {
  StartAndLose();
  failpoints_.Fail("s3.get", absl::UnavailableError("the network failed"), 1);
  Watch();
  EXPECT_EQ(StateOfLease(), LeaseState::kReleased);
  EXPECT_EQ(homes_->Find(folder_).place, Place::kMoving);
  EXPECT_EQ(files_->state().unusable, 0);
  Watch();
  EXPECT_EQ(homes_->Find(folder_).place, Place::kHere);
  EXPECT_OK(Touch(handle_));
}

TEST_F(FolderWatchTest, ADaemonThatStopsAdoptsNoFurtherFolder) {
  StartAndLose();
  second_->leases().ReleaseAll();
  const int before = failpoints_.reached("s3.send");
  failpoints_.Hold("s3.send");
  {
    FolderWatch watch(*shared_, *homes_, *files_, *cache_, analyses_);
    failpoints_.AwaitReached("s3.send", before + 1);  // by the first adoption
    watch.StopAdoptions();
    failpoints_.Release("s3.send");
  }
  EXPECT_EQ(homes_->counts().adopted, 1);
}

TEST_F(FolderWatchTest, ClosesAFolderAfterItsLastFactor) {
  StartAndLose();
  Watch();
  EXPECT_EQ(StateOfLease(), LeaseState::kHeld);
  ASSERT_OK(cache_->Release(kTenant, handle_));
  Sweep();  // waits until another thread has discarded the file
  files_->AwaitDiscards();
  Watch();
  EXPECT_EQ(StateOfLease(), LeaseState::kClosed);
  EXPECT_TRUE(files_->Holds(files_->home()));
  ASSERT_OK(TryPut(true));
}

TEST_F(FolderWatchTest, AnAdoptionWithoutMemoryIsRepeated) {
  StartAndLose();
  // No other allocation has this size.
  testing::RefuseSize(sizeof(HandleTable::Entry));
  Watch();
  EXPECT_TRUE(testing::StopRefusing());
  EXPECT_EQ(StateOfLease(), LeaseState::kReleased);
  EXPECT_EQ(homes_->Find(folder_).place, Place::kMoving);
  EXPECT_EQ(homes_->counts().adopted, 0);
  Watch();
  EXPECT_EQ(homes_->Find(folder_).place, Place::kHere);
  EXPECT_OK(Touch(handle_));
}

}  // namespace
}  // namespace crout::folder_watch_test
