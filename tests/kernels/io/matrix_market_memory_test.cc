// SPDX-License-Identifier: Apache-2.0

// Tests that the reader and its tasks never use more memory than they were granted. All allocations
// of this program are counted.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/io/entry_reader.h"
#include "kernels/io/matrix_market_reader.h"
#include "kernels/util/mutex.h"
#include "tests/kernels/io/matrix_market_testing.h"
#include "tests/support/memory/counted_heap.h"

namespace crout::matrix_market_memory_test {
namespace {

using testing::CountedHeap;

// Allowance in bytes for small allocations of this test and of a reader, which do not grow with the
// file.
constexpr int64_t kSlack = 64 << 10;

// Grants memory up to a limit.
class CountedGrant final : public MemoryGrant {
 public:
  explicit CountedGrant(size_t limit = SIZE_MAX) : limit_(limit) {}
  bool TryTake(size_t bytes) override {
    MutexLock lock(&mutex_);
    if (bytes > limit_ - taken_) return false;
    taken_ += bytes;
    max_taken_ = std::max(max_taken_, taken_);
    CountedHeap::Grant(bytes);
    return true;
  }
  absl::Status Take(size_t bytes) override {
    if (TryTake(bytes)) return absl::OkStatus();
    return absl::ResourceExhaustedError("the grant is used up");
  }
  void Give(size_t bytes) override {
    MutexLock lock(&mutex_);
    EXPECT_LE(bytes, taken_);
    taken_ -= bytes;
    CountedHeap::Withdraw(bytes);
  }

  size_t max_taken() const {
    MutexLock lock(&mutex_);
    return max_taken_;
  }
  size_t taken() const {
    MutexLock lock(&mutex_);
    return taken_;
  }

 private:
  const size_t limit_;
  mutable Mutex mutex_;
  size_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t max_taken_ ABSL_GUARDED_BY(mutex_) = 0;
};

enum class Shape {
  kCoordinate,
  kPattern,
  kArray,
  kBlank,
  kOneColumn,
  kComplex,
  kComplexArray,
  kComplexColumn
};

// Returns a text with 300,000 lines. Depending on `shape`, its entries take more memory than the
// text or none, or are unsorted in one column.
std::string Text(Shape shape) {
  constexpr int kLines = 300000;
  std::string lines;
  for (int i = 0; i < kLines; ++i) {
    switch (shape) {
      case Shape::kCoordinate:
        absl::StrAppend(&lines, i % 1000 + 1, " ", i / 1000 + 1, " 1.5\n");
        break;
      case Shape::kPattern:
        absl::StrAppend(&lines, "1 1\n");
        break;
      case Shape::kArray:
        absl::StrAppend(&lines, "1\n");
        break;
      case Shape::kBlank:
        absl::StrAppend(&lines, i % 100 == 0 ? "1 1 1\n" : "\n%\n");
        break;
      case Shape::kOneColumn:
        absl::StrAppend(&lines, kLines - i, " 1 1\n");
        break;
      case Shape::kComplex:
        absl::StrAppend(&lines, i % 1000 + 1, " ", i / 1000 + 1,
                        i % 1001 == 0 ? " 1 0\n" : " 1 2\n");
        break;
      case Shape::kComplexArray:
        absl::StrAppend(&lines, "1 2\n");
        break;
      case Shape::kComplexColumn:
        absl::StrAppend(&lines, kLines - i, " 1 1 2\n");
        break;
    }
  }
  constexpr char kBanner[] = "%%MatrixMarket matrix ";
  switch (shape) {
    case Shape::kCoordinate:
      return absl::StrCat(kBanner, "coordinate real symmetric\n1000 1000 300000\n", lines);
    case Shape::kPattern:
      return absl::StrCat(kBanner, "coordinate pattern general\n2 2 300000\n", lines);
    case Shape::kArray:
      return absl::StrCat(kBanner, "array real general\n1000 300\n", lines);
    case Shape::kBlank:
      return absl::StrCat(kBanner, "coordinate real general\n2 2 3000\n", lines);
    case Shape::kOneColumn:
      return absl::StrCat(kBanner, "coordinate real symmetric\n300000 300000 300000\n", lines);
    case Shape::kComplex:
      return absl::StrCat(kBanner, "coordinate complex hermitian\n1000 1000 300000\n", lines);
    case Shape::kComplexArray:
      return absl::StrCat(kBanner, "array complex general\n1000 300\n", lines);
    case Shape::kComplexColumn:
      return absl::StrCat(kBanner, "coordinate complex symmetric\n300000 300000 300000\n", lines);
  }
  return "";
}

struct Case {
  Shape shape;
  bool gzip;
  int threads;  // 0: without a pool
  size_t segment_bytes;
};

class MatrixMarketMemoryTest : public ::testing::TestWithParam<Case> {
 public:
  // Passes the file to a reader in pieces of `piece` bytes.
  static absl::Status Read(std::string_view file, size_t piece, MatrixReader* reader) {
    while (!file.empty()) {
      const std::string_view given = file.substr(0, piece);
      file.remove_prefix(given.size());
      if (!reader->TryReserve(given.size())) {
        if (absl::Status status = reader->Reserve(given.size()); !status.ok()) return status;
      }
      if (absl::Status status = reader->Append(given); !status.ok()) return status;
    }
    return reader->Finish();
  }

 protected:
  // Reads the file with a grant of `limit` bytes. Expects RESOURCE_EXHAUSTED, or success if `limit`
  // is SIZE_MAX. Returns the most bytes that were granted at a time.
  static size_t ReadGranted(std::string_view file, size_t piece, size_t limit,
                            bool build_value_map = false) {
    MatrixMarketLimits limits;
    limits.build_value_map = build_value_map;
    limits.max_gzip_ratio = 1e6;
    limits.segment_bytes = GetParam().segment_bytes;
    const auto grant = std::make_shared<CountedGrant>(limit);
    CountedHeap::Restart();
    {
      const int threads = GetParam().threads;
      const auto pool = threads > 0 ? std::make_unique<ThreadPool>(threads) : nullptr;
      MatrixMarketReader reader(limits, pool.get(), grant);
      const absl::Status status = Read(file, piece, &reader);
      if (limit == SIZE_MAX) {
        EXPECT_TRUE(status.ok()) << status;
        GiveResult(&reader, grant.get());
      } else {
        EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
      }
    }
    EXPECT_LE(CountedHeap::MaxExcess(), kSlack);
    EXPECT_EQ(grant->taken(), 0u);
    return grant->max_taken();
  }

  static void GiveResult(MatrixMarketReader* reader, MemoryGrant* grant) {
    const size_t held = reader->memory_bytes();
    {
      const SparseMatrix sparse = reader->TakeSparse();
      const ValueMapData map = reader->TakeValueMap();
      const std::vector<double> dense = reader->TakeDense();
      const std::vector<double> imaginary = reader->TakeDenseImaginary();
    }
    EXPECT_GT(held, reader->memory_bytes());
    grant->Give(held - reader->memory_bytes());
  }
};

TEST_P(MatrixMarketMemoryTest, StaysWithinTheGrant) {
  const std::string text = Text(GetParam().shape);
  const std::string file = GetParam().gzip ? Gzip(text) : text;
  for (const size_t piece : {size_t{997}, size_t{100000}, size_t{4} << 20}) {
    SCOPED_TRACE(absl::StrCat("pieces of ", piece));
    ReadGranted(file, piece, SIZE_MAX);
  }
  SCOPED_TRACE("with a map of the lines");
  ReadGranted(file, size_t{100000}, SIZE_MAX, /*build_value_map=*/true);
}

TEST_P(MatrixMarketMemoryTest, FreesEverythingAfterARefusal) {
  const std::string text = Text(GetParam().shape);
  const std::string file = GetParam().gzip ? Gzip(text) : text;
  constexpr size_t kPiece = 4096;
  const size_t most = ReadGranted(file, kPiece, SIZE_MAX);
  for (const size_t part : {50, 10}) {
    SCOPED_TRACE(absl::StrCat("a grant of 1/", part));
    EXPECT_LE(ReadGranted(file, kPiece, most / part), most / part);
  }
}

std::string NameOf(const ::testing::TestParamInfo<Case>& info) {
  constexpr const char* kShapes[] = {"Coordinate", "Pattern", "Array",        "Blank",
                                     "OneColumn",  "Complex", "ComplexArray", "ComplexColumn"};
  const Case& c = info.param;
  return absl::StrCat(kShapes[static_cast<int>(c.shape)], c.gzip ? "Gzip" : "Plain", c.threads,
                      "Threads", c.segment_bytes >> 10, "KiB");
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const Shape shape :
       {Shape::kCoordinate, Shape::kPattern, Shape::kArray, Shape::kBlank, Shape::kOneColumn,
        Shape::kComplex, Shape::kComplexArray, Shape::kComplexColumn}) {
    for (const bool gzip : {false, true}) {
      cases.push_back({shape, gzip, 0, size_t{1} << 20});
      cases.push_back({shape, gzip, 3, size_t{1} << 20});
      cases.push_back({shape, gzip, 2, size_t{128} << 10});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, MatrixMarketMemoryTest, ::testing::ValuesIn(Cases()), NameOf);

// Returns 300,000 unsorted entries in the given format.
std::string BinaryEntries(const EntryFormat& format) {
  std::string bytes(format.bytes(), 0);
  const auto put = [&](int64_t item, int64_t index) {
    std::memcpy(bytes.data() + item * format.index_bytes, &index, format.index_bytes);
  };
  const int64_t first_column = format.compressed_rows ? format.rows + 1 : format.entries;
  for (int64_t i = 0; i < first_column; ++i) {
    put(i, format.compressed_rows ? i * format.entries / format.rows : i * 7 % format.rows);
  }
  for (int64_t e = 0; e < format.entries; ++e) {
    put(first_column + e, (format.entries - e) * 11 % format.columns);
  }
  return bytes;
}

TEST(EntryReaderMemoryTest, StaysWithinTheGrantAndStopsAtItsLimit) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kComplex64}) {
    for (const bool compressed : {false, true}) {
      for (const int index_bytes : {4, 8}) {
        for (const size_t piece : {size_t{100}, size_t{65536}, size_t{1} << 22}) {
          const EntryFormat format = {dtype, compressed, index_bytes, 1000, 1000, 300000};
          const std::string bytes = BinaryEntries(format);
          size_t most = 0;
          for (const bool refused : {false, true}) {
            const auto grant = std::make_shared<CountedGrant>(refused ? most - 1 : SIZE_MAX);
            CountedHeap::Restart();
            {
              EntryReader reader(format, /*build_value_map=*/true, grant);
              const absl::Status status = MatrixMarketMemoryTest::Read(bytes, piece, &reader);
              EXPECT_EQ(status.code(),
                        refused ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kOk);
              if (!refused) {
                size_t held = 0;
                {
                  const size_t before = grant->taken();
                  const SparseMatrix sparse = reader.TakeSparse();
                  const ValueMapData map = reader.TakeValueMap();
                  held = ResultBytes(sparse, map);
                  EXPECT_EQ(held, before);
                }
                grant->Give(held);
              }
            }
            EXPECT_LE(CountedHeap::MaxExcess(), kSlack);
            EXPECT_EQ(grant->taken(), 0u);
            if (!refused) most = grant->max_taken();
          }
          // Memory is needed for the received entries, stored in pieces that may be an eighth
          // empty, and for the sorted matrix.
          MatrixMarketHeader header;
          header.field = IsComplex(dtype) ? MatrixMarketHeader::Field::kComplex
                                          : MatrixMarketHeader::Field::kReal;
          header.columns = format.columns;
          header.entries = format.entries;
          const size_t arrived =
              format.entries * (SizeOf(dtype) + (compressed ? 1 : 2) * sizeof(int32_t));
          EXPECT_LE(most, arrived + arrived / 8 + AssembledBytes(header) + ValueMapBytes(header) +
                              (size_t{1} << 17));
        }
      }
    }
  }
}

}  // namespace
}  // namespace crout::matrix_market_memory_test
