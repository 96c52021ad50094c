// SPDX-License-Identifier: Apache-2.0

// Tests of the directory of stored factors: its start, its budget, and its behaviour on a full or
// failing disk.
#include "server/engine/store/factor_store.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/util/status_macros.h"
#include "tests/server/engine/store/stored_factors.h"
#include "tests/support/status_matchers.h"
#include "tests/support/timing/failpoints.h"

namespace crout::testing::factor_store_test {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLimit = size_t{16} << 20;

class FactorStoreTest : public ::testing::Test {
 protected:
  absl::Status Open(size_t max_bytes = kLimit) {
    found_.clear();  // The store outlives its files.
    store_.reset();
    CROUT_ASSIGN_OR_RETURN(store_, FactorStore::Open({folder_.path(), max_bytes}, &found_));
    return absl::OkStatus();
  }

  absl::StatusOr<StoredFile> Put(const StoredSample& sample) {
    CROUT_ASSIGN_OR_RETURN(const FactorImage image, FactorImage::Make(sample.record, sample.parts));
    auto reservation = store_->budget().TryReserve(FactorStore::DiskBytes(image.bytes()));
    if (!reservation) return absl::ResourceExhaustedError("the budget");
    return store_->Write(sample.record, image, *std::move(reservation));
  }
  absl::StatusOr<FactorParts> Get(const StoredFile& file) {
    return store_->ReadParts(file, SampleMemory());
  }

  std::vector<std::string> Names(const std::string& subfolder) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_ / subfolder)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }
  std::string OnlyFile() const { return folder_ / ("factors/" + Names("factors").at(0)); }

  const TemporaryFolder folder_;
  Failpoints failpoints_;
  std::unique_ptr<FactorStore> store_;
  std::vector<FoundFactor> found_;
};

TEST_F(FactorStoreTest, ReadsFactorsBackAfterAStart) {
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
      EXPECT_EQ(analysis->border, sample->record.summary.sparse->analysis->border);
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

TEST_F(FactorStoreTest, FindsTheNewestVersionAndItsLease) {
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
  EXPECT_EQ(Names("factors").size(), 1u);
}

TEST_F(FactorStoreTest, QuarantinesDamagedFiles) {
  ASSERT_OK(Open());
  ASSERT_OK(Put(DenseSample(3, 1)));
  std::string torn = ReadBytes(OnlyFile());
  torn.resize(torn.size() / 2);
  WriteBytes(OnlyFile(), torn);
  ASSERT_OK(Open());
  EXPECT_TRUE(found_.empty());
  EXPECT_EQ(store_->state().quarantined, 1);
  EXPECT_EQ(Names("quarantine").size(), 1u);
  EXPECT_EQ(store_->budget().reserved(), FactorStore::DiskBytes(torn.size()));

  // Damage of the parts is found when they are read.
  ASSERT_OK_AND_ASSIGN(StoredFile file, Put(DenseSample(3, 2)));
  std::string flipped = ReadBytes(OnlyFile());
  flipped.back() ^= 1;
  WriteBytes(OnlyFile(), flipped);
  EXPECT_EQ(Get(file).status().code(), absl::StatusCode::kDataLoss);
  file.MarkDamaged();
  file.Discard();
  ASSERT_OK(Open());
  EXPECT_TRUE(Names("factors").empty());
  EXPECT_EQ(store_->state().quarantined, 2);
}

TEST_F(FactorStoreTest, KeepsFilesThatItCannotReadNow) {
  ASSERT_OK(Open());
  ASSERT_OK(Put(DenseSample(3)));
  failpoints_.Fail("store.read", absl::UnavailableError("EIO"), 1);
  ASSERT_OK(Open());
  EXPECT_TRUE(found_.empty());
  EXPECT_EQ(store_->state().unusable, 1);
  EXPECT_GT(store_->budget().reserved(), 0u);
  ASSERT_OK(Open());
  ASSERT_EQ(found_.size(), 1u);
  failpoints_.Fail("store.read", absl::UnavailableError("EIO"), 1);
  EXPECT_EQ(Get(found_[0].file).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(store_->state().failed_reads, 1);
  EXPECT_OK(Get(found_[0].file));
}

TEST_F(FactorStoreTest, ChargesOtherFiles) {
  ASSERT_OK(Open());
  const std::string other(10'000, 'x');
  WriteBytes(folder_ / "factors/notes.txt", other);
  WriteBytes(folder_ / "quarantine/old", other);
  WriteBytes(folder_ / "factors/half.safetensors.tmp", other);
  ASSERT_OK(Open());
  EXPECT_EQ(store_->budget().reserved(), 2 * FactorStore::DiskBytes(other.size()));
  EXPECT_EQ(store_->state().unusable, 1);
  EXPECT_EQ(store_->state().quarantined, 1);
  EXPECT_EQ(Names("factors"), std::vector<std::string>{"notes.txt"});
  EXPECT_THAT(Open(/*max_bytes=*/10'000),
              FailsWith(absl::StatusCode::kFailedPrecondition, "--max-store-bytes"));
}

TEST_F(FactorStoreTest, AStartDropsFactorsAboveTheBudgetUnlessTheyAreDurable) {
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
  EXPECT_EQ(Names("factors").size(), 1u);
  EXPECT_THAT(Open(bytes - 1), FailsWith(absl::StatusCode::kFailedPrecondition, "durable"));
  EXPECT_EQ(Names("factors").size(), 1u);
}

TEST_F(FactorStoreTest, OneProcessUsesADirectory) {
  ASSERT_OK(Open());
  std::vector<FoundFactor> found;
  EXPECT_THAT(FactorStore::Open({folder_.path(), kLimit}, &found),
              FailsWith(absl::StatusCode::kFailedPrecondition, "another croutd"));
  store_.reset();
  EXPECT_OK(FactorStore::Open({folder_.path(), kLimit}, &found));
}

TEST_F(FactorStoreTest, AFailedWriteStopsWritesForAWhile) {
  ASSERT_OK(Open());
  const StoredSample sample = DenseSample(3);
  for (const char* name : {"store.write", "store.sync", "store.rename"}) {
    failpoints_.Fail(name, absl::ResourceExhaustedError("the disk is full"), 1);
    EXPECT_EQ(Put(sample).status().code(), absl::StatusCode::kResourceExhausted) << name;
    EXPECT_TRUE(Names("factors").empty());
    EXPECT_EQ(store_->budget().reserved(), 0u);
    EXPECT_TRUE(store_->state().degraded);
    EXPECT_EQ(store_->state().reason, "the disk is full");
    EXPECT_THAT(store_->CheckWritable(),
                FailsWith(absl::StatusCode::kUnavailable, "the disk is full"));
    const int writes = failpoints_.reached("store.create");
    EXPECT_EQ(Put(sample).status().code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(failpoints_.reached("store.create"), writes);
    failpoints_.Advance(absl::Seconds(31));
    ASSERT_OK_AND_ASSIGN(StoredFile file, Put(sample));
    EXPECT_FALSE(store_->state().degraded);
    file.Discard();
    ASSERT_OK(Open());
  }
}

TEST_F(FactorStoreTest, RefusesFactorsAboveTheBudget) {
  ASSERT_OK(Open(/*max_bytes=*/12'000));
  ASSERT_OK_AND_ASSIGN(const StoredFile one, Put(DenseSample(3, 1)));
  ASSERT_OK_AND_ASSIGN(const StoredFile other, Put(DenseSample(3, 1)));
  EXPECT_EQ(Put(DenseSample(3, 2)).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(store_->state().degraded);
}

TEST_F(FactorStoreTest, ChoosesHalfOfTheDiskByDefault) {
  ASSERT_OK(Open(/*max_bytes=*/0));
  const fs::space_info space = fs::space(folder_.path());
  EXPECT_GT(store_->budget().limit(), 0u);
  EXPECT_LE(store_->budget().limit(), space.capacity / 2);
}

TEST_F(FactorStoreTest, StartsQuicklyWithManyFiles) {
  constexpr int kFiles = 10'000;
  ASSERT_OK(Open(size_t{1} << 30));
  StoredSample sample = DenseSample(3);
  for (int i = 0; i < kFiles; ++i) {
    sample.record.handle = Handle::Random();
    ASSERT_OK_AND_ASSIGN(const FactorImage image, FactorImage::Make(sample.record, sample.parts));
    // Without the syncs of Write().
    ASSERT_OK_AND_ASSIGN(
        const OpenFile file,
        CreateFile(folder_ / ("factors/" + sample.record.handle.ToString() + "-1.safetensors")));
    ASSERT_OK(image.AppendTo(file));
  }
  const auto start = std::chrono::steady_clock::now();
  ASSERT_OK(Open(size_t{1} << 30));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(found_.size(), kFiles);
  RecordProperty("seconds", std::to_string(seconds.count()));
}

}  // namespace
}  // namespace crout::testing::factor_store_test
