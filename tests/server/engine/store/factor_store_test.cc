// SPDX-License-Identifier: Apache-2.0

// Tests of stored factors on each kind of storage: the start, the budget, and the behaviour on a
// full or failing disk.
#include "server/engine/store/factor_store.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/util/status_macros.h"
#include "server/engine/store/directory_store.h"
#include "tests/server/engine/store/storage.h"
#include "tests/server/engine/store/stored_factors.h"
#include "tests/support/memory/counting_resource.h"
#include "tests/support/status_matchers.h"
#include "tests/support/timing/eventually.h"
#include "tests/support/timing/failpoints.h"

namespace crout::testing::factor_store_test {
namespace {

constexpr size_t kLimit = size_t{16} << 20;

// Opens the store as a start of the daemon does, with the storage of the test.
class StoreTest {
 public:
  explicit StoreTest(StorageKind kind) : storage_(Storage::Make(kind)) {}

 protected:
  absl::Status Open(size_t max_bytes = kLimit, int threads = 2) {
    found_.clear();  // The store outlives its files.
    store_.reset();
    CROUT_ASSIGN_OR_RETURN(auto objects, storage_->Open());
    CROUT_ASSIGN_OR_RETURN(
        store_, FactorStore::Open(std::move(objects), {.max_bytes = max_bytes, .threads = threads},
                                  &found_));
    return absl::OkStatus();
  }

  absl::StatusOr<StoredFile> Put(const StoredSample& sample) {
    FactorRecord record = sample.record;
    record.folder = store_->home();
    CROUT_ASSIGN_OR_RETURN(FactorImage image, FactorImage::Make(record, sample.parts));
    std::shared_ptr<OverdueWrite> overdue;  // samples outlive it
    auto reservation = store_->budget().TryReserve(store_->Charged(image.bytes()));
    if (!reservation) return absl::ResourceExhaustedError("the budget");
    return store_->Write(record, record.tenant, std::move(image), *std::move(reservation),
                         &overdue);
  }
  absl::StatusOr<FactorParts> Get(const StoredFile& file) {
    return store_->ReadParts(file, SampleMemory());
  }

  std::string OnlyName() const { return storage_->Names().at(0); }

  Failpoints failpoints_;
  const std::unique_ptr<Storage> storage_;
  std::unique_ptr<FactorStore> store_;
  std::vector<FoundFactor> found_;
};

class FactorStoreTest : public StoreTest, public ::testing::TestWithParam<StorageKind> {
 protected:
  FactorStoreTest() : StoreTest(GetParam()) {}
};

INSTANTIATE_TEST_SUITE_P(Storages, FactorStoreTest,
                         ::testing::Values(StorageKind::kDirectory, StorageKind::kSealedDirectory,
                                           StorageKind::kBucket),
                         [](const auto& info) { return NameOfKind(info.param); });

TEST_P(FactorStoreTest, ReadsFactorsBackAfterAStart) {
  ASSERT_OK(Open());
  std::vector<StoredSample> samples = SampleFactors();
  for (const StoredSample& sample : samples) ASSERT_OK(Put(sample));
  EXPECT_GT(store_->state().written_bytes, 0);
  ASSERT_OK(Open());
  ASSERT_EQ(found_.size(), samples.size());
  size_t bytes = 0;
  for (FoundFactor& found : found_) {
    const auto sample = std::find_if(samples.begin(), samples.end(), [&](const StoredSample& one) {
      return one.record.handle == found.record.handle;
    });
    ASSERT_NE(sample, samples.end());
    EXPECT_EQ(found.part_bytes, sample->parts.bytes());
    ASSERT_OK_AND_ASSIGN(const FactorParts parts, Get(found.file));
    EXPECT_TRUE(HaveEqualParts(parts, sample->parts));
    if (found.record.summary.sparse) {
      ASSERT_OK_AND_ASSIGN(const auto analysis, store_->ReadAnalysis(found.file));
      EXPECT_EQ(analysis.border, sample->record.summary.sparse->analysis->border);
    }
    bytes += found.file.bytes();
  }
  EXPECT_EQ(store_->budget().reserved(), bytes);
  EXPECT_GT(store_->state().read_bytes, 0);
  for (FoundFactor& found : found_) found.file.Discard();
  store_->AwaitDiscards();
  EXPECT_EQ(store_->budget().reserved(), 0u);
  ASSERT_OK(Open());
  EXPECT_TRUE(found_.empty());
  EXPECT_EQ(store_->budget().reserved(), 0u);
}

TEST_P(FactorStoreTest, FindsTheNewestVersionAndItsLease) {
  ASSERT_OK(Open());
  StoredSample sample = DenseSample(3);
  ASSERT_OK(Put(sample));
  sample.record.version = 2;
  const absl::Time end = absl::FromUnixSeconds(1'900'000'000);
  {
    ASSERT_OK_AND_ASSIGN(const StoredFile file, Put(sample));
    store_->SetLeaseEnd(file, end);
  }
  ASSERT_OK(Open());
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].record.version, 2);
  EXPECT_EQ(found_[0].lease_end, end);
  EXPECT_EQ(storage_->Names().size(), 1u);
}

TEST_P(FactorStoreTest, QuarantinesDamagedFiles) {
  ASSERT_OK(Open());
  ASSERT_OK(Put(DenseSample(3, 1)));
  std::string torn = storage_->Read(OnlyName());
  torn.resize(torn.size() / 2);
  storage_->Write(OnlyName(), torn);
  ASSERT_OK(Open());
  EXPECT_TRUE(found_.empty());
  EXPECT_EQ(store_->state().quarantined, 1);
  EXPECT_TRUE(storage_->Names().empty());
  EXPECT_EQ(store_->budget().reserved(), store_->Charged(torn.size()));

  // Damage of the parts is found when they are read.
  ASSERT_OK(Put(DenseSample(60, 2)));  // has several blocks if it is sealed
  std::string flipped = storage_->Read(OnlyName());
  flipped.back() ^= 1;
  storage_->Write(OnlyName(), flipped);
  ASSERT_OK(Open());
  ASSERT_EQ(found_.size(), 1u);
  StoredFile& file = found_[0].file;
  EXPECT_EQ(Get(file).status().code(), absl::StatusCode::kDataLoss);
  file.MarkDamaged();
  file.Discard();
  ASSERT_OK(Open());
  EXPECT_TRUE(storage_->Names().empty());
  EXPECT_EQ(store_->state().quarantined, 2);
}

TEST_P(FactorStoreTest, KeepsFilesThatItCannotReadNow) {
  ASSERT_OK(Open());
  ASSERT_OK(Put(DenseSample(3)));
  failpoints_.Fail(storage_->read_failpoint(), absl::UnavailableError("EIO"), 1);
  ASSERT_OK(Open());
  EXPECT_TRUE(found_.empty());
  EXPECT_EQ(store_->state().unusable, 1);
  EXPECT_GT(store_->budget().reserved(), 0u);
  ASSERT_OK(Open());
  ASSERT_EQ(found_.size(), 1u);
  failpoints_.Fail(storage_->read_failpoint(), absl::UnavailableError("EIO"), 1);
  EXPECT_EQ(Get(found_[0].file).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(store_->state().failed_reads, 1);
  EXPECT_OK(Get(found_[0].file));
}

TEST_P(FactorStoreTest, AStartDropsFactorsAboveTheBudgetUnlessTheyAreDurable) {
  ASSERT_OK(Open());
  StoredSample sample = DenseSample(3, 1);
  size_t bytes = 0;
  {
    ASSERT_OK_AND_ASSIGN(const StoredFile first, Put(sample));
    bytes = first.bytes();
  }
  sample.record.handle = Handle::Random();
  sample.record.durable = true;
  ASSERT_OK(Put(sample));
  ASSERT_OK(Open(bytes));
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_TRUE(found_[0].record.durable);
  EXPECT_EQ(storage_->Names().size(), 1u);
  EXPECT_THAT(Open(bytes - 1), FailsWith(absl::StatusCode::kFailedPrecondition, "durable"));
  EXPECT_EQ(storage_->Names().size(), 1u);
}

TEST_P(FactorStoreTest, AFailedWriteStopsWritesForAWhile) {
  ASSERT_OK(Open());
  const StoredSample sample = DenseSample(3);
  const char* const name = storage_->write_failpoint();
  failpoints_.Fail(name, absl::ResourceExhaustedError("the disk is full"), 1);
  EXPECT_EQ(Put(sample).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(storage_->Names().empty());
  EXPECT_EQ(store_->budget().reserved(), 0u);
  EXPECT_TRUE(store_->state().degraded);
  EXPECT_EQ(store_->state().reason, "the disk is full");
  EXPECT_THAT(store_->CheckWritable(sample.record.tenant),
              FailsWith(absl::StatusCode::kUnavailable, "the disk is full"));
  const int writes = failpoints_.reached(name);
  EXPECT_EQ(Put(sample).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(failpoints_.reached(name), writes);
  ASSERT_OK(Open());  // the storage of a bucket has a lease, which Advance() would end
  EXPECT_FALSE(store_->state().degraded);
  ASSERT_OK(Put(sample));
}

TEST_P(FactorStoreTest, RefusesFactorsAboveTheBudget) {
  ASSERT_OK(Open());
  size_t bytes = 0;
  {
    ASSERT_OK_AND_ASSIGN(const StoredFile file, Put(DenseSample(3, 1)));
    bytes = file.bytes();
  }
  ASSERT_OK(Open(/*max_bytes=*/5 * bytes / 2));
  ASSERT_OK_AND_ASSIGN(const StoredFile other, Put(DenseSample(3, 2)));
  EXPECT_EQ(Put(DenseSample(3, 3)).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(store_->state().degraded);
}

class DirectoryStoreTest : public StoreTest, public ::testing::Test {
 protected:
  DirectoryStoreTest() : StoreTest(StorageKind::kDirectory) {}
};

TEST_F(DirectoryStoreTest, ChargesOtherFiles) {
  ASSERT_OK(Open());
  const std::string other(10'000, 'x');
  storage_->Write("factors/notes.txt", other);
  storage_->Write("quarantine/old", other);
  storage_->Write("factors/half.safetensors.tmp", other);
  ASSERT_OK(Open());
  EXPECT_EQ(store_->budget().reserved(), 2 * store_->Charged(other.size()));
  EXPECT_EQ(store_->state().unusable, 1);
  EXPECT_EQ(store_->state().quarantined, 1);
  EXPECT_EQ(storage_->Names(), std::vector<std::string>{"factors/notes.txt"});
  EXPECT_THAT(Open(/*max_bytes=*/10'000),
              FailsWith(absl::StatusCode::kFailedPrecondition, "--max-store-bytes"));
}

TEST_F(DirectoryStoreTest, OneProcessUsesADirectory) {
  ASSERT_OK(Open());
  EXPECT_THAT(storage_->Open(), FailsWith(absl::StatusCode::kFailedPrecondition, "another croutd"));
  store_.reset();
  EXPECT_OK(storage_->Open());
}

TEST_F(DirectoryStoreTest, FilesNeedTheKeyThatSealedThem) {
  const TemporaryFolder folder;
  const auto open = [&](const std::optional<ObjectKey>& key) -> absl::Status {
    found_.clear();
    store_.reset();
    CROUT_ASSIGN_OR_RETURN(auto objects, DirectoryStore::Open(folder.path(), key));
    CROUT_ASSIGN_OR_RETURN(store_,
                           FactorStore::Open(std::move(objects), {.max_bytes = kLimit}, &found_));
    return absl::OkStatus();
  };
  const ObjectKey key = *ObjectKey::Parse(std::string(64, 'a'));
  const ObjectKey other = *ObjectKey::Parse(std::string(64, 'b'));
  ASSERT_OK(open(key));
  const StoredSample sealed = DenseSample(3, 1);
  ASSERT_OK(Put(sealed));
  const std::string path =
      folder / ("factors/" + sealed.record.handle.ToString() + "-1.safetensors");
  EXPECT_EQ(ReadBytes(path).find("checksum"), std::string::npos) << "the header is readable";
  for (const auto& wrong : {std::optional<ObjectKey>(), std::optional(other)}) {
    ASSERT_OK(open(wrong));
    EXPECT_TRUE(found_.empty());
    EXPECT_EQ(store_->state().unusable, 1);
    EXPECT_EQ(store_->state().quarantined, 0);
  }
  ASSERT_OK(open(std::nullopt));
  ASSERT_OK(Put(DenseSample(3, 2)));
  ASSERT_OK(open(key));
  ASSERT_EQ(found_.size(), 1u) << "the file without encryption stays unused";
  EXPECT_EQ(found_[0].record.handle, sealed.record.handle);
  EXPECT_OK(Get(found_[0].file));
}

TEST_F(DirectoryStoreTest, TriesAgainAfterAFailedWrite) {
  ASSERT_OK(Open());
  const StoredSample sample = DenseSample(3);
  for (const char* name : {"store.write", "store.sync", "store.rename"}) {
    failpoints_.Fail(name, absl::ResourceExhaustedError("the disk is full"), 1);
    EXPECT_EQ(Put(sample).status().code(), absl::StatusCode::kResourceExhausted) << name;
    EXPECT_TRUE(storage_->Names().empty());
    EXPECT_TRUE(store_->state().degraded);
    failpoints_.Advance(absl::Seconds(31));
    ASSERT_OK_AND_ASSIGN(StoredFile file, Put(sample));
    EXPECT_FALSE(store_->state().degraded);
    file.Discard();
    ASSERT_OK(Open());
  }
}

// Fixture for tests of tenants that share one thread of the store. alice_ and bob_ are files of
// alice, with many bytes, and of bob.
class StoreTurnsTest : public DirectoryStoreTest {
 protected:
  void SetUp() override {
    ASSERT_OK(Open(kLimit, /*threads=*/1));
    ASSERT_OK_AND_ASSIGN(alice_, PutFor("alice", /*n=*/300));
    ASSERT_OK_AND_ASSIGN(bob_, PutFor("bob"));
  }
  void TearDown() override {
    for (std::thread& thread : threads_) thread.join();
  }

  absl::StatusOr<StoredFile> PutFor(const std::string& tenant, int64_t n = 3) {
    StoredSample sample = DenseSample(n);
    sample.record.handle = Handle::Random();
    sample.record.tenant = tenant;
    return Put(sample);
  }
  // Holds the thread of the store in a removal of alice, until the failpoint is released.
  void HoldThread() {
    ASSERT_OK_AND_ASSIGN(StoredFile removed, PutFor("alice"));
    failpoints_.Hold("store.remove");
    removed.Discard();
    failpoints_.AwaitReached("store.remove");
  }
  void Start(std::function<absl::Status()> call) {
    threads_.emplace_back([this, call = std::move(call)] {
      EXPECT_OK(call());
      ++done_;
    });
  }
  void AwaitWaiting(const char* tenant, size_t calls) {
    EXPECT_TRUE(Eventually([&] { return store_->waiting(tenant) == calls; })) << tenant;
  }

  StoredFile alice_, bob_;
  std::atomic<int> done_ = 0;  // calls of Start() that have ended
  std::vector<std::thread> threads_;
};

TEST_F(StoreTurnsTest, RemovalsAndLeasesOfATenantRefuseNoWrites) {
  HoldThread();
  for (size_t i = 0; i < 2 * FactorStore::kMaxWaiting; ++i) {
    store_->SetLeaseEnd(alice_, absl::FromUnixSeconds(1'900'000'000));
  }
  EXPECT_OK(store_->CheckWritable("alice"));
  EXPECT_OK(store_->CheckWritable("bob"));
  Start([this] { return PutFor("bob").status(); });
  AwaitWaiting("bob", 1);
  store_->AwaitDiscards("bob");
  failpoints_.Release("store.remove");
}

TEST_F(StoreTurnsTest, ATenantWithTooManyCallsIsRefusedAlone) {
  HoldThread();
  for (size_t i = 0; i < FactorStore::kMaxWaiting; ++i) {
    Start([this] { return Get(alice_).status(); });
  }
  AwaitWaiting("alice", FactorStore::kMaxWaiting);
  EXPECT_THAT(store_->CheckWritable("alice"),
              FailsWith(absl::StatusCode::kUnavailable, "the limit is 64"));
  EXPECT_OK(store_->CheckWritable("bob"));
  failpoints_.Release("store.remove");
}

TEST_F(StoreTurnsTest, TenantsTakeTurnsByBytes) {
  CountingResource first(size_t{16} << 20), second(size_t{16} << 20);
  first.gate().Close();
  second.gate().Close();
  Start([&] { return store_->ReadParts(alice_, first).status(); });
  first.gate().WaitUntilHeld();
  Start([&] { return store_->ReadParts(alice_, second).status(); });
  AwaitWaiting("alice", 1);
  Start([this] { return Get(bob_).status(); });
  Start([this] { return PutFor("bob").status(); });
  AwaitWaiting("bob", 2);
  first.gate().Open();
  // By number, the second call of alice would hold the thread before the second call of bob.
  EXPECT_TRUE(Eventually([&] { return done_ == 3; }));
  EXPECT_EQ(second.live_buffers(), 0);
  second.gate().Open();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

TEST_F(DirectoryStoreTest, ChoosesHalfOfTheDiskByDefault) {
  ASSERT_OK(Open(/*max_bytes=*/0));
  const std::filesystem::space_info space =
      std::filesystem::space(std::filesystem::temp_directory_path());
  EXPECT_GT(store_->budget().limit(), 0u);
  EXPECT_LE(store_->budget().limit(), space.capacity / 2);
}

TEST_F(DirectoryStoreTest, ReadsManyFilesAtAStart) {
  constexpr int kFiles = 1'000;
  ASSERT_OK(Open(size_t{1} << 30));
  StoredSample sample = DenseSample(3);
  for (int i = 0; i < kFiles; ++i) {
    sample.record.handle = Handle::Random();
    ASSERT_OK_AND_ASSIGN(const FactorImage image, FactorImage::Make(sample.record, sample.parts));
    std::string bytes;  // written without the syncs of Write()
    for (const auto buffer : image.contents()) {
      bytes.append(reinterpret_cast<const char*>(buffer.data()), buffer.size());
    }
    storage_->Write("factors/" + sample.record.handle.ToString() + "-1.safetensors", bytes);
  }
  ASSERT_OK(Open(size_t{1} << 30));
  EXPECT_EQ(found_.size(), kFiles);
}

}  // namespace
}  // namespace crout::testing::factor_store_test
