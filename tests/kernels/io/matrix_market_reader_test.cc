// SPDX-License-Identifier: Apache-2.0

// Tests the input that the Matrix Market reader accepts, and the matrices that it returns.
#include "kernels/io/matrix_market_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/stop_requested.h"
#include "kernels/util/thread_pool.h"
#include "tests/kernels/io/matrix_market_testing.h"
#include "tests/support/timing/gate.h"

namespace crout::matrix_market_reader_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kReal[] = "%%MatrixMarket matrix coordinate real general\n";

struct Case {
  const char* name;
  std::string text;
  int64_t rows, columns;
  std::vector<MatrixEntry> entries;  // 0-based, by column, then by row
};

std::vector<Case> CoordinateCases() {
  const std::string banner = "%%MatrixMarket matrix coordinate ";
  return {
      {"plain",
       banner + "real general\n2 3 2\n1 1 1.5\n2 3 -2e3\n",
       2,
       3,
       {{0, 0, 1.5}, {1, 2, -2000}}},
      {"integer",
       banner + "integer general\n1 1 1\n1 1 9223372036854775807\n",
       1,
       1,
       {{0, 0, 0x1p63}}},
      {"unsigned integer",
       banner + "unsigned-integer general\n1 1 1\n1 1 18446744073709551615\n",
       1,
       1,
       {{0, 0, 0x1p64}}},
      {"double", banner + "double general\n1 1 1\n1 1 -1.5e2\n", 1, 1, {{0, 0, -150}}},
      {"pattern", banner + "pattern general\n2 2 2\n2 1 \n1 2\n", 2, 2, {{1, 0, 1}, {0, 1, 1}}},
      {"pattern with values",
       banner + "pattern general\n2 2 2\n2 1 7\n1 2 2.5\n",
       2,
       2,
       {{1, 0, 1}, {0, 1, 1}}},
      {"symmetric",
       banner + "real symmetric\n2 2 2\n1 1 3\n2 1 4\n",
       2,
       2,
       {{0, 0, 3}, {1, 0, 4}, {0, 1, 4}}},
      {"symmetric from the upper triangle",
       banner + "real symmetric\n2 2 1\n1 2 4\n",
       2,
       2,
       {{1, 0, 4}, {0, 1, 4}}},
      {"symmetric from both triangles adds up",
       banner + "real symmetric\n2 2 2\n1 2 4\n2 1 1\n",
       2,
       2,
       {{1, 0, 5}, {0, 1, 5}}},
      {"skew-symmetric",
       banner + "integer skew-symmetric\n2 2 1\n2 1 4\n",
       2,
       2,
       {{1, 0, 4}, {0, 1, -4}}},
      {"skew-symmetric from the upper triangle",
       banner + "real skew-symmetric\n2 2 1\n1 2 4\n",
       2,
       2,
       {{1, 0, -4}, {0, 1, 4}}},
      {"comments and blank lines",
       banner + "real general\n%\n\n % x\n1 1 1\n%y\n\n  \t\n1 1 2\n\n%z",
       1,
       1,
       {{0, 0, 2}}},
      {"comments of other programs",
       banner + "real general\n%%GraphBLAS type double\n1 1 1\n1 1 2\n",
       1,
       1,
       {{0, 0, 2}}},
      {"CRLF", banner + "real general\r\n% c\r\n1 1 1\r\n\r\n1 1 2\r\n", 1, 1, {{0, 0, 2}}},
      {"tabs and blanks",
       banner + "real general \n\t1  1\t1 \n \t1\t 1  2 \t\n",
       1,
       1,
       {{0, 0, 2}}},
      {"leading plus", banner + "real general\n+1 +1 +1\n+1 +1 +2.5e+1\n", 1, 1, {{0, 0, 25}}},
      {"no newline at the end", banner + "real general\n1 1 1\n1 1 2", 1, 1, {{0, 0, 2}}},
      {"words in any case",
       "%%matrixmarket MATRIX Coordinate REAL General\n1 1 1\n1 1 2\n",
       1,
       1,
       {{0, 0, 2}}},
      {"duplicates add up in file order",
       banner + "real general\n1 1 3\n1 1 1e16\n1 1 1\n1 1 -1e16\n",
       1,
       1,
       {{0, 0, (1e16 + 1) - 1e16}}},
      {"a stored zero stays", banner + "real general\n1 1 1\n1 1 0\n", 1, 1, {{0, 0, 0}}},
      {"rows out of order",
       banner + "real general\n3 1 3\n3 1 3\n1 1 1\n2 1 2\n",
       3,
       1,
       {{0, 0, 1}, {1, 0, 2}, {2, 0, 3}}},
      {"underflow becomes zero", banner + "real general\n1 1 1\n1 1 1e-400\n", 1, 1, {{0, 0, 0}}},
      {"no integer part, no fraction",
       banner + "real general\n1 2 2\n1 1 -.5\n1 2 5.\n",
       1,
       2,
       {{0, 0, -0.5}, {0, 1, 5}}},
      {"leading zeros", banner + "real general\n01 1 1\n0001 01 007\n", 1, 1, {{0, 0, 7}}},
      {"empty", banner + "real general\n0 0 0\n", 0, 0, {}},
      {"no entries", banner + "real general\n2 1 0\n% the end", 2, 1, {}},
  };
}

TEST(MatrixMarketReaderTest, ReadsCoordinateFiles) {
  for (const Case& c : CoordinateCases()) {
    SCOPED_TRACE(c.name);
    const ReadResult result = ReadWhole(c.text);
    ASSERT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(result.sparse.rows, c.rows);
    EXPECT_EQ(result.sparse.columns, c.columns);
    NaiveMatrix expected{c.rows, c.columns, {}};
    for (const MatrixEntry& e : c.entries) expected.entries[{e.column, e.row}] = e.value;
    EXPECT_EQ(Difference(result, expected), "");
  }
}

TEST(MatrixMarketReaderTest, ReadsArraysColumnByColumn) {
  const std::string banner = "%%MatrixMarket matrix array ";
  EXPECT_THAT(ReadWhole(banner + "real general\n2 3\n1\n2\n3\n%c\n\n4\n5\n6").dense,
              ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(ReadWhole(banner + "integer symmetric\n3 3\n1\n2\n3\n4\n5\n6\n").dense,
              ElementsAre(1, 2, 3, 2, 4, 5, 3, 5, 6));
  EXPECT_THAT(ReadWhole(banner + "real skew-symmetric\n3 3\n1\n2\n3\n").dense,
              ElementsAre(0, 1, 2, -1, 0, 3, -2, -3, 0));
  for (const char* empty : {"real general\n0 0\n", "real general\n0 3\n", "real general\n3 0\n",
                            "real symmetric\n0 0\n", "real skew-symmetric\n0 0\n"}) {
    const ReadResult result = ReadWhole(banner + empty);
    EXPECT_TRUE(result.status.ok()) << empty << result.status;
    EXPECT_THAT(result.dense, IsEmpty());
  }
  EXPECT_THAT(ReadWhole(banner + "real skew-symmetric\n1 1\n").dense, ElementsAre(0));
}

TEST(MatrixMarketReaderTest, ReadsComplexFiles) {
  const std::string coordinate = "%%MatrixMarket matrix coordinate complex ";
  const std::string array = "%%MatrixMarket matrix array complex ";
  using C = std::complex<double>;
  const struct {
    std::string text;
    std::map<std::pair<int64_t, int64_t>, C> entries;  // (column, row), 0-based
  } cases[] = {
      {coordinate + "general\n2 2 2\n1 2 1.5 -2\n2 1 0 +4e0\n",
       {{{1, 0}, C(1.5, -2)}, {{0, 1}, C(0, 4)}}},
      {coordinate + "symmetric\n2 2 2\n1 1 1 2\n2 1 3 4\n",
       {{{0, 0}, C(1, 2)}, {{0, 1}, C(3, 4)}, {{1, 0}, C(3, 4)}}},
      {coordinate + "skew-symmetric\n2 2 1\n2 1 3 4\n", {{{0, 1}, C(3, 4)}, {{1, 0}, C(-3, -4)}}},
      {coordinate + "hermitian\n2 2 2\n2 2 1 -0\n2 1 3 4\n",
       {{{0, 1}, C(3, 4)}, {{1, 0}, C(3, -4)}, {{1, 1}, C(1, 0)}}},
      {coordinate + "hermitian\n2 2 1\n1 2 3 4\n", {{{0, 1}, C(3, -4)}, {{1, 0}, C(3, 4)}}},
      {coordinate + "general\n2 1 4\n2 1 1 2\n1 1 5 6\n2 1 3 4\n1 1 0 -6\n",
       {{{0, 0}, C(5, 0)}, {{0, 1}, C(4, 6)}}},
      {array + "general\n1 2\n1 2\n3 4\n", {{{0, 0}, C(1, 2)}, {{1, 0}, C(3, 4)}}},
      {array + "symmetric\n2 2\n1 2\n3 4\n5 6\n",
       {{{0, 0}, C(1, 2)}, {{0, 1}, C(3, 4)}, {{1, 0}, C(3, 4)}, {{1, 1}, C(5, 6)}}},
      {array + "skew-symmetric\n2 2\n3 4\n", {{{0, 1}, C(3, 4)}, {{1, 0}, C(-3, -4)}}},
      {array + "hermitian\n2 2\n1 0\n3 4\n5 -0\n",
       {{{0, 0}, C(1, 0)}, {{0, 1}, C(3, 4)}, {{1, 0}, C(3, -4)}, {{1, 1}, C(5, 0)}}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    const ReadResult result = ReadWhole(c.text);
    ASSERT_TRUE(result.status.ok()) << result.status;
    const NaiveMatrix expected{result.header->rows, result.header->columns, c.entries};
    EXPECT_EQ(Difference(result, expected), "");
    EXPECT_EQ(Difference(result, ReadNaively(c.text)), "");
    MatrixMarketLimits limits;
    limits.segment_bytes = 1;
    EXPECT_EQ(Difference(result, ReadPieces(
                                     c.text, [] { return 3; }, limits)),
              "");
  }
}

TEST(MatrixMarketReaderTest, ReturnsNoImaginaryPartsOfRealFiles) {
  EXPECT_THAT(ReadWhole(RandomMatrixText(9, 9, 1)).sparse.imaginary, IsEmpty());
  EXPECT_THAT(ReadWhole("%%MatrixMarket matrix array real general\n1 1\n1\n").dense_imaginary,
              IsEmpty());
}

TEST(MatrixMarketReaderTest, ReturnsTheDeclaredFormatInTheHeader) {
  MatrixMarketReader reader({}, nullptr);
  const std::string text = std::string(kReal) + "% c\n3 4 5";
  ASSERT_TRUE(reader.Append(text).ok());
  EXPECT_FALSE(reader.header().has_value());  // the size line might continue
  ASSERT_TRUE(reader.Append(std::string("\n")).ok());
  ASSERT_TRUE(reader.header().has_value());
  EXPECT_EQ(*reader.header(),
            (MatrixMarketHeader{true, MatrixMarketHeader::Field::kReal,
                                MatrixMarketHeader::Symmetry::kGeneral, 3, 4, 5}));
}

TEST(MatrixMarketReaderTest, AgreesWithTheNaiveReader) {
  const std::string text = RandomMatrixText(200, 20000, 1);
  NaiveMatrix naive = ReadNaively(text);
  EXPECT_EQ(Difference(ReadWhole(text), naive), "");
  // The comparison detects a change of one bit, an additional entry and a missing entry.
  std::complex<double>& value = naive.entries.begin()->second;
  const std::complex<double> before = value;
  value.real(std::nextafter(value.real(), 10));
  EXPECT_NE(Difference(ReadWhole(text), naive), "");
  value = before;
  naive.entries.erase(std::prev(naive.entries.end()));
  EXPECT_NE(Difference(ReadWhole(text), naive), "");
}

TEST(MatrixMarketReaderTest, DoesNotDependOnPiecesAndThreads) {
  ThreadPool pool(3);
  for (const bool spoil : {false, true}) {
    std::string text = RandomMatrixText(300, 4000, 2);
    if (spoil) text.insert(text.find('\n', text.size() / 2) + 1, "1 2 x\n7\n");
    const ReadResult whole = ReadWhole(text);
    EXPECT_EQ(whole.status.ok(), !spoil);
    const std::string gzip = Gzip(text);
    MatrixMarketLimits limits;
    for (const size_t segment_bytes : {1, 100, 5000, 1 << 20}) {
      limits.segment_bytes = segment_bytes;
      for (const size_t piece : {1, 7, 1000, 1 << 20}) {
        const auto size = [&] { return piece; };
        EXPECT_EQ(Difference(ReadPieces(text, size, limits, &pool), whole), "") << piece;
        EXPECT_EQ(Difference(ReadPieces(gzip, size, limits, &pool), whole), "") << piece;
        EXPECT_EQ(Difference(ReadPieces(gzip, size, limits), whole), "") << piece;
      }
      std::mt19937 random(segment_bytes);
      for (int i = 0; i < 20; ++i) {
        const auto size = [&] { return random() % 3 == 0 ? random() % 5000 : random() % 50; };
        EXPECT_EQ(Difference(ReadPieces(text, size, limits, &pool), whole), "");
        EXPECT_EQ(Difference(ReadPieces(gzip, size, limits, &pool), whole), "");
      }
    }
  }
}

TEST(MatrixMarketReaderTest, ReadsSegmentsOfTheDefaultSize) {
  ThreadPool pool(4);
  const std::string text = RandomMatrixText(1000, 200000, 3);
  ASSERT_GT(text.size(), 4 * MatrixMarketLimits().segment_bytes);
  const ReadResult result = ReadPieces(
      text, [] { return size_t{1} << 20; }, {}, &pool);
  EXPECT_EQ(Difference(result, ReadNaively(text)), "");
  EXPECT_EQ(Difference(result, ReadPieces(
                                   Gzip(text), [] { return size_t{1} << 16; }, {}, &pool)),
            "");
}

TEST(MatrixMarketReaderTest, ReadsConcatenatedGzipMembersAsOneText) {
  const std::string text = RandomMatrixText(20, 300, 4);
  const std::string members = Gzip(text.substr(0, 700)) + Gzip("") + Gzip(text.substr(700));
  EXPECT_EQ(Difference(ReadWhole(members), ReadWhole(text)), "");
  EXPECT_EQ(Difference(ReadPieces(members, [] { return 1; }), ReadWhole(text)), "");
}

TEST(MatrixMarketReaderTest, FinishesOnThePool) {
  ThreadPool pool(1);
  const std::string text = RandomMatrixText(100, 5000, 5);
  MatrixMarketLimits limits;
  limits.segment_bytes = 1000;
  ReadResult result;
  {
    ThreadPool other(1);
    other.Schedule([&] { result = ReadWhole(Gzip(text), limits, &other); });
  }
  EXPECT_EQ(Difference(result, ReadWhole(text)), "");
}

TEST(MatrixMarketReaderTest, MemoryGrowsWithTheReceivedText) {
  MatrixMarketReader reader({}, nullptr);
  const std::string header = std::string(kReal) + "1000000 1000000 1000000000\n";
  ASSERT_TRUE(reader.Append(header).ok());
  EXPECT_LT(reader.memory_bytes(), 10000u);
  std::string lines;
  for (int i = 0; i < 100000; ++i) lines += "1 1 1\n";
  ASSERT_TRUE(reader.Append(lines).ok());
  EXPECT_GE(reader.memory_bytes(), lines.size());
  EXPECT_LT(reader.memory_bytes(), 10 * lines.size());
  // Blank lines claim memory only for their text.
  ASSERT_TRUE(reader.Append(std::string(8 << 20, '\n')).ok());
  EXPECT_LT(reader.memory_bytes(), (2 << 20) + 10 * lines.size());
  EXPECT_FALSE(reader.Finish().ok());
  EXPECT_LT(reader.memory_bytes(), size_t{4} << 20);
}

TEST(MatrixMarketReaderTest, PeakBytesBoundsTheMemory) {
  ThreadPool pool(2);
  const std::string text = RandomMatrixText(500, 50000, 6);
  MatrixMarketReader reader({}, &pool);
  ASSERT_TRUE(reader.Append(text).ok());
  const auto peak = static_cast<size_t>(PeakBytes(*reader.header()));
  EXPECT_LE(reader.memory_bytes(), peak + 2 * text.size() + (2 << 20));
  ASSERT_TRUE(reader.Finish().ok());
  EXPECT_LE(reader.memory_bytes(), peak);
  EXPECT_GT(reader.memory_bytes(), 0u);
  reader.TakeSparse();
  EXPECT_LE(reader.memory_bytes(), size_t{2} << 20);
}

TEST(MatrixMarketReaderTest, PeakBytesSaturates) {
  MatrixMarketHeader header;
  header.entries = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(PeakBytes(header), std::numeric_limits<int64_t>::max());
  header.coordinate = false;
  header.entries = 1;
  header.rows = header.columns = std::numeric_limits<int32_t>::max();
  EXPECT_EQ(PeakBytes(header), std::numeric_limits<int64_t>::max());
}

TEST(MatrixMarketReaderTest, DestructionLeavesThePoolUsable) {
  ThreadPool pool(2);
  const std::string text = RandomMatrixText(500, 50000, 7);
  MatrixMarketLimits limits;
  limits.segment_bytes = 1000;
  for (int i = 0; i < 20; ++i) {
    MatrixMarketReader reader(limits, &pool);
    ASSERT_TRUE(reader.Append(i % 2 == 0 ? text : Gzip(text)).ok());
  }
  EXPECT_EQ(Difference(ReadWhole(text, limits, &pool), ReadWhole(text)), "");
}

TEST(MatrixMarketReaderTest, ReportsErrorsBeforeTheEnd) {
  ThreadPool pool(1);
  MatrixMarketLimits limits;
  limits.segment_bytes = 100;
  MatrixMarketReader reader(limits, &pool);
  EXPECT_FALSE(reader.Append(std::string("no banner\n")).ok());
  MatrixMarketReader late(limits, &pool);
  ASSERT_TRUE(late.Append(std::string(kReal) + "9 9 1000000\n1 1 x\n").ok());
  // The error must be returned without Finish, but the pool needs some time to find it.
  absl::Status status;
  for (int i = 0; i < 1000000 && status.ok(); ++i) status = late.Append(std::string("1 1 1\n"));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(late.Append(std::string("1 1 1\n")), status);
  EXPECT_EQ(late.Finish(), status);
}

// Appends the text in one piece and calls Finish(stop). The pool is blocked, so that Finish parses
// every segment.
absl::Status FinishWith(const std::string& text, StopRequested stop) {
  testing::Gate gate;
  gate.Close();
  ThreadPool pool(1);
  pool.Schedule([&gate] { gate.Pass(); });
  gate.WaitUntilHeld();
  absl::Status status;
  {
    MatrixMarketLimits limits;
    limits.segment_bytes = 1 << 10;
    MatrixMarketReader reader(limits, &pool);
    status = reader.Append({text.data(), text.size()});
    if (status.ok()) status = reader.Finish(stop);
  }
  gate.Open();
  return status;
}

// Stops at the first poll, in the middle and at the last one.
void ExpectStops(const std::string& text, int min_polls) {
  int polls = 0;
  const auto finish = [&](int stops_at) {
    polls = 0;
    return FinishWith(text, [&] { return ++polls == stops_at; });
  };
  ASSERT_TRUE(finish(0).ok());
  const int all = polls;
  EXPECT_GE(all, min_polls);
  for (const int k : {1, all / 2, all}) {
    EXPECT_EQ(finish(k).code(), absl::StatusCode::kCancelled) << k << " of " << all;
    EXPECT_EQ(polls, k) << "it went on";
  }
}

TEST(MatrixMarketStopTest, StopsBetweenSegments) {
  const std::string text = RandomMatrixText(100, 5000, /*seed=*/1);
  const int segments = static_cast<int>(text.size() >> 10);
  ExpectStops(text, segments);
  ExpectStops(Gzip(text), segments);
}

TEST(MatrixMarketStopTest, StopsDuringExpansionOfASymmetricArray) {
  constexpr int kOrder = 1024;
  std::string text = "%%MatrixMarket matrix array real symmetric\n1024 1024\n";
  constexpr int kValues = kOrder * (kOrder + 1) / 2;
  for (int i = 0; i < kValues; ++i) text += "1\n";
  const int segments = static_cast<int>(text.size() >> 10);
  ExpectStops(text, segments + kValues / static_cast<int>(StopCounter::kStepsBetweenStops));
}

}  // namespace
}  // namespace crout::matrix_market_reader_test
