// SPDX-License-Identifier: Apache-2.0

// Tests where a daemon finds the factors of a folder.
#include "server/replicas/folder_homes.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "tests/support/fakes/memory_s3.h"
#include "tests/support/status_matchers.h"
#include "tests/support/timing/failpoints.h"

namespace crout::testing::folder_homes_test {
namespace {

using Place = FolderHomes::Place;

// A process of a daemon.
struct Process {
  Process(std::shared_ptr<MemoryBucket> bucket, std::string name)
      : objects(std::move(bucket), std::make_shared<Connection>()),
        leases(objects, {.prefix = "", .name = std::move(name)}),
        homes(leases) {}

  Place PlaceOf(const std::string& folder) { return homes.Find(folder).place; }
  void Scan() {
    homes.BeginScan();
    ASSERT_OK(leases.Scan());
    homes.EndScan();
  }

  MemoryS3 objects;
  FolderLeases leases;
  FolderHomes homes;
};

class FolderHomesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(a_.leases.Begin());
    ASSERT_OK(b_.leases.Begin());
    folder_ = a_.leases.home();
  }

  Failpoints failpoints_;  // for Advance()
  const std::shared_ptr<MemoryBucket> bucket_ = std::make_shared<MemoryBucket>();
  Process a_{bucket_, "a"};
  Process b_{bucket_, "b"};
  std::string folder_;
};

TEST_F(FolderHomesTest, NamesTheOwner) {
  EXPECT_EQ(a_.PlaceOf(folder_), Place::kHere);
  EXPECT_EQ(a_.homes.Find(folder_).owner, "");
  EXPECT_EQ(b_.PlaceOf(folder_), Place::kOther);
  EXPECT_EQ(b_.homes.Find(folder_).owner, "a");
  EXPECT_EQ(a_.homes.name(), "a");
  EXPECT_EQ(a_.homes.counts().owned, 1);
}

TEST_F(FolderHomesTest, AnOwnerWithADoubtfulLeaseIsTheHome) {
  failpoints_.Advance(absl::Seconds(16));
  ASSERT_EQ(a_.leases.Epoch(folder_).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(a_.PlaceOf(folder_), Place::kHere);
}

TEST_F(FolderHomesTest, AReleasedFolderMovesUntilItIsRestored) {
  a_.leases.ReleaseAll();
  b_.Scan();
  EXPECT_EQ(b_.PlaceOf(folder_), Place::kMoving);
  b_.homes.BeginAdoption(folder_);
  ASSERT_OK(b_.leases.Adopt(folder_));
  EXPECT_EQ(b_.PlaceOf(folder_), Place::kMoving);
  b_.homes.EndAdoption(folder_, /*adopted=*/true);
  EXPECT_EQ(b_.PlaceOf(folder_), Place::kHere);
  EXPECT_EQ(b_.homes.counts().owned, 2);
  EXPECT_EQ(b_.homes.counts().adopted, 1);
}

TEST_F(FolderHomesTest, AClosedFolderHasNoHome) {
  ASSERT_OK(a_.leases.Close(folder_));
  EXPECT_EQ(a_.PlaceOf(folder_), Place::kMoving);
  a_.Scan();
  b_.Scan();
  EXPECT_EQ(a_.PlaceOf(folder_), Place::kNone);
  EXPECT_EQ(b_.PlaceOf(folder_), Place::kNone);
}

TEST_F(FolderHomesTest, AFailedAdoptionLeavesTheOwner) {
  b_.homes.BeginAdoption(folder_);
  b_.homes.EndAdoption(folder_, /*adopted=*/false);
  EXPECT_EQ(b_.homes.Find(folder_).owner, "a");
  EXPECT_EQ(b_.homes.counts().adopted, 0);
}

TEST_F(FolderHomesTest, AnUnknownFolderMovesUntilAScan) {
  Process c(bucket_, "c");
  ASSERT_OK(c.leases.Begin());
  const std::string created = c.leases.home();
  const std::string absent = RandomFolderName();
  b_.homes.BeginScan();
  EXPECT_EQ(b_.PlaceOf(created), Place::kMoving);
  EXPECT_EQ(b_.PlaceOf(absent), Place::kMoving);
  b_.homes.EndScan();  // The scan began before the questions.
  EXPECT_EQ(b_.PlaceOf(absent), Place::kMoving);
  b_.Scan();
  EXPECT_EQ(b_.homes.Find(created).owner, "c");
  EXPECT_EQ(b_.PlaceOf(absent), Place::kNone);
  b_.Scan();
  EXPECT_EQ(b_.PlaceOf(absent), Place::kNone);
}

TEST_F(FolderHomesTest, AFolderThatAnotherDaemonAdoptsFirstMoves) {
  Process c(bucket_, "c");
  ASSERT_OK(c.leases.Begin());
  const std::string folder = c.leases.home();
  b_.homes.BeginScan();
  EXPECT_EQ(b_.PlaceOf(folder), Place::kMoving);  // The call arrives during the scan.
  ASSERT_OK(b_.leases.Scan());
  b_.homes.EndScan();
  EXPECT_EQ(b_.homes.Find(folder).owner, "c");
  c.leases.ReleaseAll();
  a_.Scan();
  b_.Scan();
  ASSERT_OK(a_.leases.Adopt(folder));
  b_.homes.BeginAdoption(folder);
  EXPECT_TRUE(absl::IsAborted(b_.leases.Adopt(folder)));
  b_.homes.EndAdoption(folder, /*adopted=*/false);
  EXPECT_EQ(b_.PlaceOf(folder), Place::kMoving);
  b_.Scan();
  EXPECT_EQ(b_.homes.Find(folder).owner, "a");
}

TEST_F(FolderHomesTest, ClientsCannotFillTheMemory) {
  for (int i = 0; i < 5000; ++i) b_.PlaceOf(RandomFolderName());
  const std::string absent = RandomFolderName();
  EXPECT_EQ(b_.PlaceOf(absent), Place::kMoving);
  EXPECT_EQ(b_.homes.Find(folder_).owner, "a");
  b_.Scan();  // The question was not stored.
  EXPECT_EQ(b_.PlaceOf(absent), Place::kMoving);
  b_.Scan();
  EXPECT_EQ(b_.PlaceOf(absent), Place::kNone);
}

TEST_F(FolderHomesTest, ADaemonLivesWhileItRenewsALease) {
  EXPECT_TRUE(b_.homes.IsAlive("a"));
  EXPECT_FALSE(b_.homes.IsAlive("b"));
  EXPECT_FALSE(b_.homes.IsAlive("c"));
  EXPECT_FALSE(b_.homes.IsAlive(""));
  failpoints_.Advance(absl::Seconds(21));
  EXPECT_FALSE(b_.homes.IsAlive("a"));
  a_.leases.Renew();
  b_.Scan();
  EXPECT_TRUE(b_.homes.IsAlive("a"));
  a_.leases.ReleaseAll();
  b_.Scan();
  EXPECT_FALSE(b_.homes.IsAlive("a"));
}

TEST_F(FolderHomesTest, CountsLostFolders) {
  a_.homes.CountLost();
  EXPECT_EQ(a_.homes.counts().lost, 1);
}

}  // namespace
}  // namespace crout::testing::folder_homes_test
