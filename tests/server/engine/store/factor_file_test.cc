// SPDX-License-Identifier: Apache-2.0

// Tests that the file of a factor holds the same factor, and that torn, flipped and hostile files
// are refused.
#include "server/engine/store/factor_file.h"

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "gtest/gtest.h"
#include "kernels/util/status_macros.h"
#include "server/engine/store/directory_store.h"
#include "server/engine/store/stored_analysis.h"
#include "tests/server/engine/store/stored_factors.h"
#include "tests/support/status_matchers.h"
#include "tests/support/timing/failpoints.h"

namespace crout::testing::factor_file_test {
namespace {

class FactorFileTest : public ::testing::Test {
 protected:
  void Write(const StoredSample& sample) {
    ASSERT_OK_AND_ASSIGN(const FactorImage image, FactorImage::Make(sample.record, sample.parts));
    ASSERT_OK(WriteFileOnce(folder_.path(), path_, image.contents()));
    EXPECT_EQ(std::filesystem::file_size(path_), image.bytes());
    EXPECT_FALSE(std::filesystem::exists(path_ + kTemporarySuffix));
  }

  absl::StatusOr<FactorFile> Open() const {
    CROUT_ASSIGN_OR_RETURN(std::unique_ptr<ObjectReader> reader, OpenFileObject(path_));
    return FactorFile::Open(std::move(reader));
  }

  // Reads everything in the file.
  absl::Status ReadAll() {
    auto file = Open();
    if (!file.ok()) return file.status();
    if (file->record().summary.sparse) {
      const auto analysis = file->ReadAnalysis();
      if (!analysis.ok()) return analysis.status();
    }
    return file->ReadParts(SampleMemory()).status();
  }

  // Writes `sample` with a changed record, and expects that the file is refused.
  void ExpectRefused(const StoredSample& sample,
                     const std::function<void(FactorRecord& record)>& change,
                     absl::StatusCode code = absl::StatusCode::kDataLoss) {
    FactorRecord record = sample.record;
    change(record);
    ASSERT_OK_AND_ASSIGN(const FactorImage image, FactorImage::Make(record, sample.parts));
    ASSERT_OK(WriteFileOnce(folder_.path(), path_, image.contents()));
    EXPECT_EQ(ReadAll().code(), code) << sample.label << ", change " << ++changes_;
  }

  int changes_ = 0;  // refused records
  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "factor.safetensors";
};

TEST_F(FactorFileTest, HoldsFactorsOfAllKindsAndTypes) {
  for (const StoredSample& sample : SampleFactors()) {
    SCOPED_TRACE(sample.label + " " + std::string(NameOf(sample.record.summary.factor_dtype)));
    Write(sample);
    ASSERT_OK_AND_ASSIGN(const FactorFile file, Open());
    EXPECT_EQ(EncodeRecord(file.record()), EncodeRecord(sample.record));
    EXPECT_EQ(file.part_bytes(), sample.parts.bytes());
    EXPECT_TRUE(file.has_matrix());
    ASSERT_OK_AND_ASSIGN(const FactorParts parts, file.ReadParts(SampleMemory()));
    EXPECT_TRUE(HaveEqualParts(parts, sample.parts));
    for (const FactorPart& part : parts) {
      const bool operand = part.name == kMatrixPart || part.name == kSparseMatrixPart;
      EXPECT_EQ(part.kind, operand ? PartKind::kOperand : PartKind::kFactor) << part.name;
    }
    if (!sample.record.summary.sparse) continue;
    const Analysis& expected = *sample.record.summary.sparse->analysis;
    EXPECT_LE(expected.bytes(), file.analysis_bytes() + 1024);
    ASSERT_OK_AND_ASSIGN(const auto analysis, file.ReadAnalysis());
    EXPECT_EQ(analysis.pattern, expected.pattern);
    EXPECT_EQ(analysis.ordering, expected.ordering);
    EXPECT_EQ(analysis.factor_start, expected.factor_start);
    EXPECT_EQ(analysis.row_scale, expected.row_scale);
    EXPECT_EQ(analysis.place_in_parent, expected.place_in_parent);
  }
}

TEST_F(FactorFileTest, KeepsNumbersThatJsonLacks) {
  StoredSample sample = DenseSample(3);
  sample.record.summary.pivot_growth = std::numeric_limits<double>::infinity();
  sample.record.summary.quality = std::numeric_limits<double>::quiet_NaN();
  sample.record.summary.det_log_abs = -std::numeric_limits<double>::infinity();
  sample.record.summary.norm_one = 0.1;
  sample.record.life_end = sample.record.create_time + absl::Hours(24);
  Write(sample);
  ASSERT_OK_AND_ASSIGN(const FactorFile file, Open());
  const FactorSummary& read = file.record().summary;
  EXPECT_EQ(read.pivot_growth, sample.record.summary.pivot_growth);
  EXPECT_TRUE(std::isnan(*read.quality));
  EXPECT_EQ(read.det_log_abs, sample.record.summary.det_log_abs);
  EXPECT_EQ(read.norm_one, 0.1);
  EXPECT_EQ(file.record().life_end, sample.record.life_end);
}

TEST_F(FactorFileTest, RefusesTornFiles) {
  Write(DenseSample(3));
  const std::string whole = ReadBytes(path_);
  for (size_t length = 0; length < whole.size(); ++length) {
    WriteBytes(path_, whole.substr(0, length));
    ASSERT_EQ(ReadAll().code(), absl::StatusCode::kDataLoss) << length;
  }
  WriteBytes(path_, whole + "x");
  EXPECT_EQ(ReadAll().code(), absl::StatusCode::kDataLoss);
  WriteBytes(path_, whole);
  EXPECT_OK(ReadAll());
}

TEST_F(FactorFileTest, RefusesFilesWithAFlippedBit) {
  Write(DenseSample(3));
  const std::string whole = ReadBytes(path_);
  for (size_t byte = 0; byte < whole.size(); ++byte) {
    std::string flipped = whole;
    flipped[byte] ^= static_cast<char>(1 << (byte % 8));
    WriteBytes(path_, flipped);
    ASSERT_EQ(ReadAll().code(), absl::StatusCode::kDataLoss) << byte;
  }
}

TEST_F(FactorFileTest, SeparatesFailedReadsFromDamage) {
  Write(DenseSample(3));
  Failpoints failpoints;
  failpoints.Fail("store.read", absl::UnavailableError("EIO"), 1);
  EXPECT_EQ(ReadAll().code(), absl::StatusCode::kUnavailable);
  EXPECT_OK(ReadAll());
  failpoints.FlipBit("store.read", 5);
  EXPECT_EQ(ReadAll().code(), absl::StatusCode::kDataLoss);
}

TEST_F(FactorFileTest, LeavesNothingAfterAFailedWrite) {
  const StoredSample sample = DenseSample(3);
  ASSERT_OK_AND_ASSIGN(const FactorImage image, FactorImage::Make(sample.record, sample.parts));
  Failpoints failpoints;
  for (const char* name :
       {"store.create", "store.write", "store.sync", "store.rename", "store.sync_directory"}) {
    failpoints.Fail(name, absl::ResourceExhaustedError("no space"), 1);
    EXPECT_EQ(WriteFileOnce(folder_.path(), path_, image.contents()).code(),
              absl::StatusCode::kResourceExhausted);
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << name;
  }
}

TEST_F(FactorFileTest, RefusesRecordsThatContradictTheParts) {
  const StoredSample dense = DenseSample(4);
  ExpectRefused(dense, [](FactorRecord& record) { record.summary.n = 5; });
  ExpectRefused(dense, [](FactorRecord& record) { record.summary.n = -1; });
  ExpectRefused(dense, [](FactorRecord& record) { record.summary.n = int64_t{1} << 62; });
  ExpectRefused(dense,
                [](FactorRecord& record) { record.summary.factor_dtype = DType::kComplex128; });
  ExpectRefused(dense, [](FactorRecord& record) { record.summary.preparation.emplace(); });
  ExpectRefused(dense, [](FactorRecord& record) { record.summary.batch.emplace(); });
  ExpectRefused(dense, [](FactorRecord& record) { record.version = 0; });
  ExpectRefused(dense, [](FactorRecord& record) { record.tenant.clear(); });
  ExpectRefused(dense, [](FactorRecord& record) { record.lease = -absl::Seconds(1); });
  for (const StoredSample& sample : SampleFactors()) {
    if (sample.label == "batch") {
      const auto refuse = [&](const std::function<void(BatchExtent & extent)>& change) {
        ExpectRefused(sample, [&](FactorRecord& record) { change(record.summary.batch->extent); });
      };
      refuse([](BatchExtent& extent) { extent.members = 1'000'000; });
      refuse([](BatchExtent& extent) { extent.members = -1; });
      refuse([](BatchExtent& extent) { extent.bytes = size_t{1} << 40; });
      refuse([](BatchExtent& extent) { extent.bytes = ~size_t{0}; });
      refuse([](BatchExtent& extent) { extent.diagonals = 1'000'000; });
    }
    if (sample.label != "sparse") continue;
    const auto refuse = [&](const std::function<void(Analysis & analysis)>& change) {
      ExpectRefused(sample, [&](FactorRecord& record) {
        Analysis analysis = *record.summary.sparse->analysis;
        change(analysis);
        record.summary.sparse->analysis = std::make_shared<const Analysis>(std::move(analysis));
      });
    };
    refuse([](Analysis& analysis) { analysis.row_order[3] = 60; });
    refuse([](Analysis& analysis) { analysis.column_order[3] = -1; });
    refuse([](Analysis& analysis) { analysis.row_order.pop_back(); });
    refuse([](Analysis& analysis) { analysis.row_scale.pop_back(); });
    refuse([](Analysis& analysis) { analysis.first_position[1] = 61; });
    refuse([](Analysis& analysis) { analysis.parent[0] = 0; });
    refuse([](Analysis& analysis) { analysis.border[0] = 1'000; });
    refuse([](Analysis& analysis) { analysis.place_in_parent[0] = 1'000; });
    refuse([](Analysis& analysis) { analysis.factor_start[1] = 0; });
    refuse([](Analysis& analysis) { analysis.child.back() = 1'000; });
    refuse([](Analysis& analysis) { analysis.level_front[0] = -1; });
    refuse([](Analysis& analysis) { analysis.kept = 61; });
  }
}

TEST_F(FactorFileTest, LeavesOtherFormatsToOtherVersions) {
  RecordTexts texts = EncodeRecord(DenseSample(2).record);
  texts["format"] = "crout-factor-1";
  EXPECT_THAT(DecodeRecord(texts),
              FailsWith(absl::StatusCode::kFailedPrecondition, "another format"));
  texts.erase("format");
  EXPECT_THAT(DecodeRecord(texts), FailsWith(absl::StatusCode::kDataLoss, "format"));
}

TEST_F(FactorFileTest, IsReadableWithoutCrout) {
  if (std::string(CROUT_PYTHON).empty()) GTEST_SKIP() << "no Python with NumPy";
  Write(DenseSample(20));
  const std::string command = std::string(CROUT_PYTHON) + " " + CROUT_READ_FACTOR + " " + path_;
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace crout::testing::factor_file_test
