// SPDX-License-Identifier: Apache-2.0

// Tests binary sparse matrices: values that do not depend on the division into pieces, and refused
// input.
#include "kernels/io/entry_reader.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "kernels/scalar.h"
#include "kernels/stop_requested.h"

namespace crout::entry_reader_test {
namespace {

using Complex = std::complex<double>;
using ::testing::HasSubstr;

struct Entry {
  int64_t row;
  int64_t column;
  Complex value;
};

// Entries in the order of compressed rows. Some positions are repeated, and some rows are empty.
std::vector<Entry> RandomEntries(int64_t rows, int64_t columns, int count, bool complex) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int64_t> row(0, rows / 3), column(0, columns - 1);
  std::uniform_int_distribution<int> number(-8, 8);
  std::vector<Entry> entries;
  for (int k = 0; k < count; ++k) {
    entries.push_back({3 * row(random) % rows,
                       column(random),
                       {number(random) / 4.0, complex ? number(random) / 4.0 : 0}});
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.row < b.row; });
  return entries;
}

template <class T>
void Put(T value, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void PutIndex(const EntryFormat& format, int64_t index, std::string* bytes) {
  if (format.index_bytes == 8) return Put(index, bytes);
  Put(static_cast<int32_t>(index), bytes);
}

std::string BytesOf(const EntryFormat& format, const std::vector<Entry>& entries) {
  std::string bytes;
  if (format.compressed_rows) {
    size_t next = 0;
    for (int64_t i = 0; i <= format.rows; ++i) {
      while (next < entries.size() && entries[next].row < i) ++next;
      PutIndex(format, static_cast<int64_t>(next), &bytes);
    }
  } else {
    for (const Entry& entry : entries) PutIndex(format, entry.row, &bytes);
  }
  for (const Entry& entry : entries) PutIndex(format, entry.column, &bytes);
  for (const Entry& entry : entries) {
    DispatchDType(format.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (kIsComplex<T>) {
        Put(T(entry.value), &bytes);
      } else {
        Put(static_cast<T>(entry.value.real()), &bytes);
      }
    });
  }
  return bytes;
}

absl::Status Read(
    std::string_view bytes, size_t piece, EntryReader* reader,
    StopRequested stop = [] { return false; }) {
  while (!bytes.empty()) {
    const std::string_view given = bytes.substr(0, piece);
    bytes.remove_prefix(given.size());
    if (absl::Status status = reader->Append({given.data(), given.size()}); !status.ok()) {
      return status;
    }
  }
  return reader->Finish(stop);
}

class EntryReaderTest : public ::testing::TestWithParam<std::tuple<DType, bool, int>> {
 protected:
  static EntryFormat Format(int64_t rows, int64_t columns, size_t entries) {
    const auto [dtype, compressed, index_bytes] = GetParam();
    return {dtype, compressed, index_bytes, rows, columns, static_cast<int64_t>(entries)};
  }
};

INSTANTIATE_TEST_SUITE_P(All, EntryReaderTest,
                         ::testing::Combine(::testing::Values(DType::kFloat32, DType::kFloat64,
                                                              DType::kComplex64,
                                                              DType::kComplex128),
                                            ::testing::Bool(), ::testing::Values(4, 8)));

TEST(EntryReaderStopTest, StopsDuringAssembly) {
  constexpr int64_t kEntries = StopCounter::kStepsBetweenStops;
  // Many short columns, then a single long column. The entries are not sorted.
  for (const int64_t columns : {int64_t{1} << 12, int64_t{1}}) {
    std::vector<Entry> entries = RandomEntries(1 << 10, columns, kEntries, /*complex=*/false);
    std::reverse(entries.begin(), entries.end());
    const EntryFormat format = {DType::kFloat64, false, 4, 1 << 10, columns, kEntries};
    const std::string bytes = BytesOf(format, entries);
    int polls = 0;
    const auto read = [&](int stops_at) {
      polls = 0;
      EntryReader reader(format, /*build_value_map=*/false, nullptr);
      return Read(bytes, bytes.size(), &reader, [&] { return ++polls == stops_at; });
    };
    ASSERT_TRUE(read(0).ok());
    const int all = polls;
    // Assembly counts the entries, moves them to their columns, scans, sorts and sums them.
    EXPECT_GE(all, 4);
    for (int k = 1; k <= all; k += std::max(1, all / 4)) {
      EXPECT_EQ(read(k).code(), absl::StatusCode::kCancelled) << k << " of " << all;
      EXPECT_EQ(polls, k) << "it went on";
    }
  }
}

TEST_P(EntryReaderTest, SumsDuplicatesForAnyPieces) {
  const bool complex = IsComplex(std::get<0>(GetParam()));
  const std::vector<Entry> entries = RandomEntries(40, 30, 9000, complex);
  const EntryFormat format = Format(40, 30, entries.size());
  const std::string bytes = BytesOf(format, entries);
  ASSERT_EQ(static_cast<int64_t>(bytes.size()), format.bytes());
  std::map<std::pair<int64_t, int64_t>, Complex> sums;  // (column, row)
  for (const Entry& entry : entries) sums[{entry.column, entry.row}] += entry.value;
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{4096}, bytes.size()}) {
    EntryReader reader(format, /*build_value_map=*/true, nullptr);
    const absl::Status status = Read(bytes, piece, &reader);
    ASSERT_TRUE(status.ok()) << status;
    const SparseMatrix matrix = reader.TakeSparse();
    ASSERT_EQ(matrix.nonzeros(), std::ssize(sums));
    ASSERT_EQ(matrix.rows, 40);
    ASSERT_EQ(std::ssize(matrix.column_start), 31);
    auto expected = sums.begin();
    for (int64_t j = 0; j < 30; ++j) {
      for (int64_t e = matrix.column_start[j]; e < matrix.column_start[j + 1]; ++e, ++expected) {
        EXPECT_EQ(expected->first, (std::pair<int64_t, int64_t>(j, matrix.row[e])));
        EXPECT_EQ(expected->second.real(), matrix.value[e]);
        EXPECT_EQ(expected->second.imag(), complex ? matrix.imaginary[e] : 0);
      }
    }
    const ValueMapData map = reader.TakeValueMap();
    EXPECT_EQ(map.shape.lines, std::ssize(entries));
    EXPECT_EQ(map.source.size(), entries.size());
  }
}

TEST_P(EntryReaderTest, ReadsEmptyMatrices) {
  for (const auto& [rows, columns] : {std::pair(0, 0), std::pair(5, 5), std::pair(0, 3)}) {
    const EntryFormat format = Format(rows, columns, 0);
    EntryReader reader(format, false, nullptr);
    ASSERT_TRUE(Read(BytesOf(format, {}), 3, &reader).ok());
    EXPECT_EQ(reader.TakeSparse().nonzeros(), 0);
  }
}

TEST_P(EntryReaderTest, RefusesIndicesBeyondTheMatrix) {
  const int64_t most = std::get<2>(GetParam()) == 8 ? std::numeric_limits<int64_t>::max()
                                                    : std::numeric_limits<int32_t>::max();
  for (const int64_t index : {int64_t{-1}, int64_t{5}, most, -most}) {
    for (const bool is_row : {false, true}) {
      const EntryFormat format = Format(5, 5, 3);
      if (is_row && format.compressed_rows) continue;
      std::vector<Entry> entries = {{0, 0, 1}, {1, 1, 1}, {2, 2, 1}};
      (is_row ? entries[1].row : entries[1].column) = index;
      EntryReader reader(format, false, nullptr);
      const absl::Status status = Read(BytesOf(format, entries), 64, &reader);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr(absl::StrCat("entry 1 has ", is_row ? "row " : "column ", index, ";")));
    }
  }
}

TEST_P(EntryReaderTest, RefusesDecreasingOffsetsAndWrongEnds) {
  const EntryFormat format = Format(3, 3, 4);
  if (!format.compressed_rows) return;
  const std::vector<std::vector<int64_t>> wrong = {{1, 2, 3, 4}, {0, 3, 2, 4},  {0, 2, 5, 4},
                                                   {0, 1, 2, 3}, {-1, 1, 2, 4}, {0, 1, 2, 5}};
  for (const std::vector<int64_t>& offsets : wrong) {
    std::string bytes;
    for (const int64_t offset : offsets) PutIndex(format, offset, &bytes);
    EntryReader reader(format, false, nullptr);
    const absl::Status status = Read(bytes, 64, &reader);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("offset "));
  }
}

TEST_P(EntryReaderTest, RefusesNonFiniteValues) {
  for (const double value : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    const EntryFormat format = Format(3, 3, 2);
    EntryReader reader(format, false, nullptr);
    const absl::Status status = Read(BytesOf(format, {{0, 0, 1}, {1, 2, value}}), 64, &reader);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("entry 1, in row 1 and column 2 (all 0-based), is not finite"));
  }
}

TEST_P(EntryReaderTest, RefusesWrongNumberOfBytes) {
  const EntryFormat format = Format(3, 3, 2);
  const std::string bytes = BytesOf(format, {{0, 0, 1}, {1, 1, 2}});
  for (const std::string& wrong : {bytes.substr(0, bytes.size() - 1), bytes + "x", std::string()}) {
    EntryReader reader(format, false, nullptr);
    const absl::Status status = Read(wrong, 5, &reader);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat(format.bytes())));
  }
}

}  // namespace
}  // namespace crout::entry_reader_test
