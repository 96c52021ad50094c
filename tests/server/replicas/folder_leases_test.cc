// SPDX-License-Identifier: Apache-2.0

// Tests that each folder of a shared store has at most one owner.
#include "server/replicas/folder_leases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "server/replicas/periodic_task.h"
#include "tests/support/fakes/memory_s3.h"
#include "tests/support/status_matchers.h"
#include "tests/support/timing/failpoints.h"

namespace crout::testing::folder_leases_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr absl::StatusCode kAborted = absl::StatusCode::kAborted;
constexpr absl::StatusCode kUnavailable = absl::StatusCode::kUnavailable;

// A process of a daemon with its own connection to the bucket.
struct Process {
  Process(std::shared_ptr<MemoryBucket> bucket, std::string name,
          std::chrono::milliseconds duration = std::chrono::seconds(15))
      : objects(std::move(bucket), connection),
        leases(objects, {.prefix = "p/", .name = std::move(name), .duration = duration}) {}

  absl::Status Check(const std::string& folder) { return leases.Epoch(folder).status(); }
  // Reads the leases and adopts all folders that may be adopted.
  std::vector<std::string> AdoptAll() {
    const auto folders = leases.Scan();
    EXPECT_OK(folders);
    for (const std::string& folder : *folders) EXPECT_OK(leases.Adopt(folder));
    return *folders;
  }

  const std::shared_ptr<Connection> connection = std::make_shared<Connection>();
  MemoryS3 objects;
  FolderLeases leases;
};

class FolderLeasesTest : public ::testing::Test {
 protected:
  Lease LeaseOf(const std::string& folder) {
    return DecodeLease(bucket_->Read("p/leases/" + folder)).value();
  }

  Failpoints failpoints_;  // for Advance()
  const std::shared_ptr<MemoryBucket> bucket_ = std::make_shared<MemoryBucket>();
};

TEST_F(FolderLeasesTest, RefusesAStoreWithoutConditionalWrites) {
  Process a(bucket_, "a");
  EXPECT_OK(a.leases.Probe());
  EXPECT_THAT(bucket_->Keys(), IsEmpty());
  a.connection->unconditional = true;
  EXPECT_THAT(a.leases.Probe(),
              FailsWith(absl::StatusCode::kFailedPrecondition, "conditional writes"));
}

TEST_F(FolderLeasesTest, CreatesAFolder) {
  Process a(bucket_, "a");
  ASSERT_OK(a.leases.Begin());
  const std::string home = a.leases.home();
  EXPECT_THAT(a.leases.folders(), ElementsAre(home));
  EXPECT_EQ(a.leases.Epoch(home).value(), 1);
  EXPECT_EQ(LeaseOf(home).owner, "a");
  EXPECT_EQ(LeaseOf(home).state, LeaseState::kHeld);
  EXPECT_EQ(a.Check(RandomFolderName()).code(), kAborted);
}

TEST_F(FolderLeasesTest, ALeaseHoldsFor15Seconds) {
  Process a(bucket_, "a");
  ASSERT_OK(a.leases.Begin());
  const std::string home = a.leases.home();
  failpoints_.Advance(absl::Seconds(14));
  EXPECT_OK(a.Check(home));
  a.connection->down = true;
  a.leases.Renew();
  failpoints_.Advance(absl::Seconds(2));
  EXPECT_EQ(a.Check(home).code(), kUnavailable);
  // Nobody has adopted the folder.
  a.connection->down = false;
  a.leases.Renew();
  EXPECT_OK(a.Check(home));
  EXPECT_THAT(a.leases.Lost(), IsEmpty());
}

TEST_F(FolderLeasesTest, AnotherDaemonAdoptsAfter20Seconds) {
  Process a(bucket_, "a");
  Process b(bucket_, "b");
  ASSERT_OK(a.leases.Begin());
  ASSERT_OK(b.leases.Begin());
  const std::string folder = a.leases.home();
  EXPECT_THAT(b.AdoptAll(), IsEmpty());
  EXPECT_EQ(b.leases.LeaseOf(folder)->owner, "a");
  failpoints_.Advance(absl::Seconds(12));
  a.leases.Renew();
  a.connection->down = true;
  failpoints_.Advance(absl::Seconds(12));
  EXPECT_THAT(b.AdoptAll(), IsEmpty()) << "the lease has changed";
  failpoints_.Advance(absl::Seconds(19));
  EXPECT_THAT(b.AdoptAll(), IsEmpty());
  failpoints_.Advance(absl::Seconds(2));
  EXPECT_THAT(b.AdoptAll(), ElementsAre(folder));
  EXPECT_EQ(b.leases.Epoch(folder).value(), 2);

  EXPECT_EQ(a.Check(folder).code(), kUnavailable);
  a.connection->down = false;
  a.leases.Renew();
  EXPECT_EQ(a.Check(folder).code(), kAborted);
  EXPECT_THAT(a.leases.Lost(), ElementsAre(folder));
  a.leases.ForgetLost(folder);
  EXPECT_THAT(a.leases.Lost(), IsEmpty());
  EXPECT_NE(a.leases.home(), folder);
  EXPECT_OK(a.Check(a.leases.home()));
  ASSERT_OK(a.leases.Scan());
  EXPECT_EQ(a.leases.LeaseOf(folder)->owner, "b");
}

TEST_F(FolderLeasesTest, AReleasedFolderIsAdoptedAtOnceByOneDaemon) {
  Process a(bucket_, "a");
  Process b(bucket_, "b");
  Process c(bucket_, "c");
  for (Process* process : {&a, &b, &c}) ASSERT_OK(process->leases.Begin());
  const std::string folder = a.leases.home();
  a.leases.ReleaseAll();
  EXPECT_EQ(a.Check(folder).code(), kAborted);
  ASSERT_OK_AND_ASSIGN(const auto seen, c.leases.Scan());
  EXPECT_THAT(seen, ElementsAre(folder));
  EXPECT_THAT(b.AdoptAll(), ElementsAre(folder));
  EXPECT_EQ(c.leases.Adopt(folder).code(), kAborted);
  EXPECT_OK(b.Check(folder));
  EXPECT_EQ(c.Check(folder).code(), kAborted);
}

TEST_F(FolderLeasesTest, ALostFolderIsNotAdoptedBeforeItsFactorsAreDropped) {
  Process a(bucket_, "a");
  Process b(bucket_, "b");
  ASSERT_OK(a.leases.Begin());
  ASSERT_OK(b.leases.Begin());
  const std::string folder = a.leases.home();
  failpoints_.Advance(absl::Seconds(21));
  EXPECT_THAT(b.AdoptAll(), ElementsAre(folder));
  b.leases.Release(folder);
  a.leases.Renew();
  EXPECT_THAT(a.AdoptAll(), IsEmpty());
  EXPECT_THAT(a.leases.Lost(), ElementsAre(folder));
  a.leases.ForgetLost(folder);
  EXPECT_THAT(a.AdoptAll(), ElementsAre(folder));
  EXPECT_EQ(a.leases.Epoch(folder).value(), 3);
}

TEST_F(FolderLeasesTest, AnOutageOfTheStoreMovesNoFolder) {
  Process a(bucket_, "a");
  Process b(bucket_, "b");
  ASSERT_OK(a.leases.Begin());
  ASSERT_OK(b.leases.Begin());
  const std::string folder = a.leases.home();
  failpoints_.Advance(absl::Seconds(12));
  b.connection->down = true;
  EXPECT_EQ(b.leases.Scan().status().code(), kUnavailable);
  b.connection->down = false;
  failpoints_.Advance(absl::Seconds(12));
  EXPECT_THAT(b.AdoptAll(), IsEmpty()) << "the owner had no time to renew the lease";
  failpoints_.Advance(absl::Seconds(9));
  EXPECT_THAT(b.AdoptAll(), ElementsAre(folder));
}

TEST_F(FolderLeasesTest, LostRepliesLoseNoFolder) {
  Process a(bucket_, "a");
  ASSERT_OK(a.leases.Begin());
  const std::string home = a.leases.home();
  a.connection->loses_replies = true;
  a.leases.Renew();
  a.connection->loses_replies = false;
  EXPECT_EQ(LeaseOf(home).counter, 2);
  a.leases.Renew();  // finds the tag of the write whose reply was lost
  failpoints_.Advance(absl::Seconds(14));
  a.leases.Renew();
  failpoints_.Advance(absl::Seconds(14));
  EXPECT_OK(a.Check(home));
  EXPECT_THAT(a.leases.Lost(), IsEmpty());
}

TEST_F(FolderLeasesTest, ARestartedDaemonWaitsForItsFolder) {
  std::string folder;
  {
    Process killed(bucket_, "a");
    ASSERT_OK(killed.leases.Begin());
    folder = killed.leases.home();
  }
  Process other(bucket_, "b");
  ASSERT_OK(other.leases.Begin());
  Process restarted(bucket_, "a", std::chrono::milliseconds(60));
  ASSERT_OK(restarted.leases.Begin());
  EXPECT_EQ(restarted.leases.home(), folder);
  EXPECT_EQ(LeaseOf(folder).epoch, 2);
}

TEST_F(FolderLeasesTest, RefusesTheNameOfARunningDaemon) {
  Process a(bucket_, "a");
  ASSERT_OK(a.leases.Begin());
  const PeriodicTask renewing(std::chrono::milliseconds(1), [&] { a.leases.Renew(); });
  Process namesake(bucket_, "a");
  EXPECT_THAT(namesake.leases.Begin(),
              FailsWith(absl::StatusCode::kFailedPrecondition, "--replica-name"));
}

TEST_F(FolderLeasesTest, ARemovedLeaseIsLost) {
  Process a(bucket_, "a");
  ASSERT_OK(a.leases.Begin());
  const std::string home = a.leases.home();
  ASSERT_OK(a.objects.Remove("p/leases/" + home, {}));
  a.leases.Renew();
  EXPECT_THAT(a.leases.Lost(), ElementsAre(home));
}

TEST_F(FolderLeasesTest, AClosedFolderHasNoOwnerAgain) {
  Process a(bucket_, "a");
  Process b(bucket_, "b");
  Process c(bucket_, "c");
  for (Process* process : {&a, &b, &c}) ASSERT_OK(process->leases.Begin());
  const std::string folder = a.leases.home();
  a.leases.ReleaseAll();
  EXPECT_THAT(b.AdoptAll(), ElementsAre(folder));
  ASSERT_OK(b.leases.Close(folder));
  EXPECT_EQ(b.Check(folder).code(), kAborted);
  EXPECT_EQ(LeaseOf(folder).state, LeaseState::kClosed);
  // The daemon that closed the folder starts again.
  Process restarted(bucket_, "b");
  b.leases.ReleaseAll();
  ASSERT_OK(restarted.leases.Begin());
  EXPECT_EQ(restarted.Check(folder).code(), kAborted);
  EXPECT_THAT(c.AdoptAll(), IsEmpty());
  EXPECT_THAT(c.leases.LongClosed(), IsEmpty());
  failpoints_.Advance(absl::Minutes(61));
  restarted.leases.Renew();
  EXPECT_THAT(c.AdoptAll(), Not(::testing::Contains(folder)));
  EXPECT_THAT(c.leases.LongClosed(), ElementsAre(folder));
  EXPECT_EQ(c.leases.Adopt(folder).code(), kAborted);
  ASSERT_OK(c.leases.RemoveClosed(folder));
  EXPECT_THAT(bucket_->Keys("p/leases/" + folder), IsEmpty());
  ASSERT_OK(c.leases.Scan());
  EXPECT_THAT(c.leases.LongClosed(), IsEmpty());
}

TEST_F(FolderLeasesTest, AFormerOwnerClosesNothing) {
  Process a(bucket_, "a");
  Process b(bucket_, "b");
  ASSERT_OK(a.leases.Begin());
  ASSERT_OK(b.leases.Begin());
  const std::string folder = a.leases.home();
  EXPECT_THAT(b.AdoptAll(), IsEmpty());
  failpoints_.Advance(absl::Seconds(21));
  EXPECT_THAT(b.AdoptAll(), ElementsAre(folder));
  EXPECT_EQ(a.leases.Close(folder).code(), kAborted);
  EXPECT_EQ(LeaseOf(folder).owner, "b");
  b.leases.Renew();
  EXPECT_OK(b.Check(folder));
  EXPECT_EQ(a.leases.Close(folder).code(), kAborted) << "the folder is not owned";
}

TEST_F(FolderLeasesTest, AFolderThatCouldNotBeClosedIsAdopted) {
  Process a(bucket_, "a");
  Process b(bucket_, "b");
  ASSERT_OK(a.leases.Begin());
  ASSERT_OK(b.leases.Begin());
  const std::string folder = a.leases.home();
  a.connection->down = true;
  EXPECT_EQ(a.leases.Close(folder).code(), kUnavailable);
  EXPECT_EQ(a.Check(folder).code(), kAborted);
  EXPECT_THAT(b.AdoptAll(), IsEmpty());
  failpoints_.Advance(absl::Seconds(21));
  EXPECT_THAT(b.AdoptAll(), ElementsAre(folder));
  // The reply of the write is lost.
  b.connection->loses_replies = true;
  EXPECT_EQ(b.leases.Close(folder).code(), kUnavailable);
  EXPECT_EQ(LeaseOf(folder).state, LeaseState::kClosed);
}

TEST_F(FolderLeasesTest, DecodesOnlyLeases) {
  Process a(bucket_, "a");
  ASSERT_OK(a.leases.Begin());
  const Lease lease = LeaseOf(a.leases.home());
  for (const LeaseState state : {LeaseState::kHeld, LeaseState::kReleased, LeaseState::kClosed}) {
    Lease other = lease;
    other.state = state;
    EXPECT_EQ(DecodeLease(EncodeLease(other)).value(), other);
  }
  EXPECT_LE(EncodeLease({.epoch = INT64_MAX,
                         .owner = std::string(63, 'x'),
                         .process = lease.process,
                         .counter = INT64_MAX})
                .size(),
            kMaxLeaseBytes);
  const std::string process = lease.process;
  const std::vector<std::string> texts = {
      "",
      "crout-lease-1",
      "crout-lease-2 1 a " + process + " 1 held",
      "crout-lease-1 0 a " + process + " 1 held",
      "crout-lease-1 9223372036854775807 a " + process + " 1 held",
      "crout-lease-1 1 a.b " + process + " 1 held",
      "crout-lease-1 1 a " + process + " 1 kept",
      "crout-lease-1 1 a x 1 held",
      "crout-lease-1 1 a " + process + " 1 held ",
      "crout-lease-1 1  " + process + " 1 held"};
  for (const std::string& text : texts) {
    EXPECT_EQ(DecodeLease(text).status().code(), absl::StatusCode::kDataLoss) << text;
  }
  bucket_->Write("p/leases/" + RandomFolderName(), "x");
  bucket_->Write("p/leases/" + RandomFolderName(), std::string(kMaxLeaseBytes + 1, 'x'));
  bucket_->Write("p/leases/notes", "x");
  EXPECT_THAT(a.AdoptAll(), IsEmpty());
}

}  // namespace
}  // namespace crout::testing::folder_leases_test
