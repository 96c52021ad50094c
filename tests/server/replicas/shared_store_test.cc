// SPDX-License-Identifier: Apache-2.0

// Tests that owners of a folder in succession agree on its objects.
#include "server/replicas/shared_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/fakes/memory_s3.h"
#include "tests/support/status_matchers.h"
#include "tests/support/timing/failpoints.h"

namespace crout::testing::shared_store_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr absl::StatusCode kAborted = absl::StatusCode::kAborted;
constexpr absl::StatusCode kUnavailable = absl::StatusCode::kUnavailable;

// The clock of the tests alone ends a lease or renews it.
constexpr std::chrono::hours kDuration{3};
constexpr absl::Duration kToAdoption = absl::Minutes(241);

struct Daemon {
  const std::shared_ptr<Connection> connection = std::make_shared<Connection>();
  std::unique_ptr<SharedStore> store;
};

class SharedStoreTest : public ::testing::Test {
 protected:
  Daemon Start(const std::string& name) {
    Daemon daemon;
    auto store = SharedStore::Open(std::make_unique<MemoryS3>(bucket_, daemon.connection),
                                   {.prefix = "p/", .name = name, .duration = kDuration});
    EXPECT_OK(store);
    daemon.store = *std::move(store);
    return daemon;
  }
  static absl::StatusOr<StoredObject> Put(Daemon& daemon, const std::string& folder,
                                          const std::string& stem) {
    const std::span<const std::byte> bytes[] = {std::as_bytes(std::span("con", 3)),
                                                std::as_bytes(std::span("tents", 5))};
    return daemon.store->Put(folder, stem, bytes, absl::Now());
  }
  static std::vector<std::string> Stems(Daemon& daemon, const std::string& folder) {
    const absl::StatusOr<ObjectList> list = daemon.store->List(folder);
    EXPECT_OK(list);
    std::vector<std::string> stems;
    for (const StoredObject& object : list->objects) stems.push_back(object.stem);
    return stems;
  }
  // Adopts the folder of a daemon that no longer reaches the store.
  void Adopt(Daemon& from, Daemon& to, const std::string& folder) {
    from.connection->down = true;
    ASSERT_OK(to.store->leases().Scan());
    failpoints_.Advance(kToAdoption);
    to.store->leases().Renew();
    ASSERT_OK(to.store->leases().Scan());
    ASSERT_OK(to.store->leases().Adopt(folder));
  }

  Failpoints failpoints_;
  const std::shared_ptr<MemoryBucket> bucket_ = std::make_shared<MemoryBucket>();
};

TEST_F(SharedStoreTest, ReadsWhatItWrote) {
  Daemon a = Start("a");
  const std::string home = a.store->home();
  EXPECT_THAT(Stems(a, home), IsEmpty());
  ASSERT_OK_AND_ASSIGN(const StoredObject object, Put(a, home, "h-1"));
  EXPECT_EQ(object.bytes, 8u);
  EXPECT_THAT(bucket_->Keys("p/factors/"), ElementsAre("p/factors/" + home + "/h-1-1.safetensors"));
  ASSERT_OK_AND_ASSIGN(const auto reader, a.store->Open(object));
  EXPECT_EQ(reader->size(), 8u);
  std::string text(4, ' ');
  ASSERT_OK(reader->ReadAt(2, std::as_writable_bytes(std::span(text))));
  EXPECT_EQ(text, "nten");
  EXPECT_EQ(reader->ReadAt(5, std::as_writable_bytes(std::span(text))).code(),
            absl::StatusCode::kDataLoss);
  ASSERT_OK(a.store->Remove(object));
  ASSERT_OK(a.store->Remove(object));
  EXPECT_EQ(reader->ReadAt(2, std::as_writable_bytes(std::span(text))).code(),
            absl::StatusCode::kDataLoss);
}

TEST_F(SharedStoreTest, AStopReleasesTheFolder) {
  Daemon a = Start("a");
  const std::string home = a.store->home();
  ASSERT_OK(Put(a, home, "h-1"));
  a.store.reset();
  Daemon b = Start("b");
  EXPECT_THAT(b.store->folders(), UnorderedElementsAre(home, b.store->home()));
  EXPECT_NE(b.store->home(), home);
  EXPECT_THAT(Stems(b, home), ElementsAre("h-1"));
}

TEST_F(SharedStoreTest, LateWritesNeverCount) {
  Daemon a = Start("a");
  Daemon b = Start("b");
  Daemon c = Start("c");
  const std::string folder = a.store->home();
  EXPECT_THAT(Stems(a, folder), IsEmpty());
  ASSERT_OK(Put(a, folder, "h-1"));
  Adopt(a, b, folder);
  EXPECT_THAT(Stems(b, folder), ElementsAre("h-1"));
  // A put of the former owner arrives.
  const std::string late = "p/factors/" + folder + "/h-2-1.safetensors";
  bucket_->Write(late, "late");
  ASSERT_OK(Put(b, folder, "h-3"));
  Adopt(b, c, folder);
  EXPECT_THAT(Stems(c, folder), UnorderedElementsAre("h-1", "h-3"));
  EXPECT_EQ(bucket_->Read(late), "");
  // The list of each owner replaces the one before.
  EXPECT_THAT(bucket_->Keys("p/factors/" + folder + "/adopted-"),
              ElementsAre(HasSubstr("adopted-3")));
  EXPECT_THAT(Stems(c, folder), UnorderedElementsAre("h-1", "h-3"));
}

TEST_F(SharedStoreTest, AnAdoptionThatEndsEarlyIsRepeated) {
  Daemon a = Start("a");
  Daemon b = Start("b");
  Daemon c = Start("c");
  const std::string folder = a.store->home();
  ASSERT_OK(Put(a, folder, "h-1"));
  Adopt(a, b, folder);  // b writes no list
  Adopt(b, c, folder);
  EXPECT_THAT(Stems(c, folder), ElementsAre("h-1"));
}

TEST_F(SharedStoreTest, APutThatOutlivesTheLeaseIsNotConfirmed) {
  Daemon a = Start("a");
  const std::string home = a.store->home();
  failpoints_.Do("s3.send", [&] { failpoints_.Advance(absl::Hours(3)); });
  EXPECT_THAT(Put(a, home, "h-1"), FailsWith(kUnavailable, "lease"));
  EXPECT_FALSE(a.store->Holds(home));
  EXPECT_THAT(Put(a, home, "h-2"), FailsWith(kUnavailable, "lease"));
  a.store->leases().Renew();
  EXPECT_OK(Put(a, home, "h-2"));
}

TEST_F(SharedStoreTest, AFormerOwnerChangesNothing) {
  Daemon a = Start("a");
  Daemon b = Start("b");
  const std::string folder = a.store->home();
  ASSERT_OK_AND_ASSIGN(const StoredObject object, Put(a, folder, "h-1"));
  ASSERT_OK_AND_ASSIGN(const auto reader, a.store->Open(object));
  Adopt(a, b, folder);
  ASSERT_OK_AND_ASSIGN(const ObjectList adopted, b.store->List(folder));
  a.connection->down = false;
  EXPECT_EQ(a.store->Remove(object).code(), kUnavailable);
  a.store->leases().Renew();
  EXPECT_EQ(a.store->Remove(object).code(), kAborted);
  EXPECT_EQ(a.store->Quarantine(object).code(), kAborted);
  EXPECT_EQ(a.store->SetLeaseEnd(object, absl::Now()).code(), kAborted);
  EXPECT_EQ(Put(a, folder, "h-2").status().code(), kAborted);
  EXPECT_THAT(Stems(b, folder), ElementsAre("h-1"));
  // The new owner's removal is no damage to the former owner.
  ASSERT_OK(b.store->Remove(adopted.objects[0]));
  std::string text(4, ' ');
  EXPECT_EQ(reader->ReadAt(0, std::as_writable_bytes(std::span(text))).code(), kUnavailable);
}

TEST_F(SharedStoreTest, AnEarlierOwnershipChangesNothing) {
  Daemon a = Start("a");
  Daemon b = Start("b");
  const std::string folder = a.store->home();
  ASSERT_OK_AND_ASSIGN(const StoredObject object, Put(a, folder, "h-1"));
  ASSERT_OK_AND_ASSIGN(const auto reader, a.store->Open(object));
  Adopt(a, b, folder);
  b.store->leases().Release(folder);
  a.connection->down = false;
  a.store->leases().Renew();
  a.store->leases().ForgetLost(folder);
  ASSERT_OK(a.store->leases().Scan());
  ASSERT_OK(a.store->leases().Adopt(folder));
  ASSERT_OK_AND_ASSIGN(const ObjectList list, a.store->List(folder));
  ASSERT_EQ(list.objects.size(), 1u);
  // A removal was scheduled before the folder was lost.
  EXPECT_EQ(a.store->Remove(object).code(), kAborted);
  EXPECT_EQ(a.store->Quarantine(object).code(), kAborted);
  EXPECT_EQ(a.store->SetLeaseEnd(object, absl::Now()).code(), kAborted);
  EXPECT_THAT(Stems(a, folder), ElementsAre("h-1"));
  ASSERT_OK(a.store->Remove(list.objects[0]));
  std::string text(4, ' ');
  EXPECT_EQ(reader->ReadAt(0, std::as_writable_bytes(std::span(text))).code(), kUnavailable);
}

TEST_F(SharedStoreTest, KeepsTheEndOfALease) {
  Daemon a = Start("a");
  const std::string home = a.store->home();
  ASSERT_OK_AND_ASSIGN(const StoredObject object, Put(a, home, "h-1"));
  for (const int64_t seconds : {2'000'000'000, 1'900'000'000}) {
    ASSERT_OK(a.store->SetLeaseEnd(object, absl::FromUnixSeconds(seconds)));
  }
  a.store.reset();
  Daemon b = Start("b");
  ASSERT_OK_AND_ASSIGN(const ObjectList list, b.store->List(home));
  ASSERT_EQ(list.objects.size(), 1u);
  EXPECT_EQ(absl::ToUnixSeconds(list.objects[0].lease_end), 1'900'000'000);
  ASSERT_OK(b.store->Remove(list.objects[0]));
  EXPECT_THAT(bucket_->Keys("p/factors/" + home + "/h-"), IsEmpty());
}

TEST_F(SharedStoreTest, HidesDamagedAndForeignObjects) {
  Daemon a = Start("a");
  const std::string home = a.store->home();
  ASSERT_OK_AND_ASSIGN(const StoredObject object, Put(a, home, "h-1"));
  ASSERT_OK(a.store->Quarantine(object));
  bucket_->Write("p/factors/" + home + "/notes.txt", "notes");
  bucket_->Write("p/factors/" + home + "/gone-1-1.safetensors.damaged", "");
  ASSERT_OK_AND_ASSIGN(const ObjectList list, a.store->List(home));
  EXPECT_THAT(list.objects, IsEmpty());
  EXPECT_EQ(list.quarantined, 1);
  EXPECT_EQ(list.quarantined_bytes, 8u);
  EXPECT_EQ(list.others, 1);
  EXPECT_EQ(list.other_bytes, 5u);
  EXPECT_EQ(bucket_->Keys("p/factors/" + home + "/gone").size(), 0u);
}

TEST_F(SharedStoreTest, ClosesOnlyAdoptedFoldersWithoutObjects) {
  Daemon a = Start("a");
  Daemon b = Start("b");
  const std::string folder = a.store->home();
  EXPECT_FALSE(a.store->CloseIfEmpty(folder).value()) << "it is the home";
  ASSERT_OK(Put(a, folder, "h-1"));
  Adopt(a, b, folder);
  ASSERT_OK_AND_ASSIGN(const ObjectList list, b.store->List(folder));
  EXPECT_FALSE(b.store->CloseIfEmpty(folder).value());
  ASSERT_OK(b.store->Quarantine(list.objects[0]));
  EXPECT_FALSE(b.store->CloseIfEmpty(folder).value());
  ASSERT_OK(b.store->Remove(list.objects[0]));
  bucket_->Write("p/factors/" + folder + "/notes.txt", "notes");
  EXPECT_FALSE(b.store->CloseIfEmpty(folder).value());
  ASSERT_OK(MemoryS3(bucket_, b.connection).Remove("p/factors/" + folder + "/notes.txt", {}));
  b.connection->down = true;
  EXPECT_EQ(b.store->CloseIfEmpty(folder).status().code(), kUnavailable);
  EXPECT_TRUE(b.store->Holds(folder));
  b.connection->down = false;
  EXPECT_TRUE(b.store->CloseIfEmpty(folder).value());
  EXPECT_THAT(b.store->folders(), ElementsAre(b.store->home()));
  EXPECT_EQ(Put(b, folder, "h-1").status().code(), kAborted);
  EXPECT_EQ(b.store->CloseIfEmpty(folder).status().code(), kAborted);
}

TEST_F(SharedStoreTest, APutIntoAClosedFolderIsNotConfirmed) {
  Daemon a = Start("a");
  Daemon b = Start("b");
  const std::string folder = a.store->home();
  Adopt(a, b, folder);
  EXPECT_THAT(Stems(b, folder), IsEmpty());
  // The folder is closed before the object arrives.
  failpoints_.Do("replicas.put", [&] { EXPECT_TRUE(b.store->CloseIfEmpty(folder).value()); });
  EXPECT_EQ(Put(b, folder, "h-1").status().code(), kUnavailable);
  const std::string late = "p/factors/" + folder + "/h-1-2.safetensors";
  EXPECT_NE(bucket_->Read(late), "");
  // Each daemon removes what is left, and the lease at last.
  const std::string lease = "p/leases/" + folder;
  ASSERT_OK(b.store->leases().Scan());
  b.store->RemoveClosed();
  EXPECT_NE(bucket_->Read(late), "") << "an hour has not passed";
  failpoints_.Advance(absl::Minutes(61));
  b.store->RemoveClosed();
  EXPECT_THAT(bucket_->Keys("p/factors/" + folder), IsEmpty());
  EXPECT_NE(bucket_->Read(lease), "");
  b.store->RemoveClosed();
  EXPECT_EQ(bucket_->Read(lease), "");
}

TEST_F(SharedStoreTest, AFailedPutLeavesNothing) {
  Daemon a = Start("a");
  const std::string home = a.store->home();
  failpoints_.Fail("s3.send", absl::PermissionDeniedError("AccessDenied"), 1);
  EXPECT_THAT(Put(a, home, "h-1"), FailsWith(kUnavailable, "AccessDenied"));
  failpoints_.Fail("s3.send", absl::ResourceExhaustedError("QuotaExceeded"), 1);
  EXPECT_THAT(Put(a, home, "h-1"),
              FailsWith(absl::StatusCode::kResourceExhausted, "QuotaExceeded"));
  EXPECT_THAT(bucket_->Keys("p/factors/"), IsEmpty());
}

}  // namespace
}  // namespace crout::testing::shared_store_test
