// SPDX-License-Identifier: Apache-2.0

// Tests that the Matrix Market reader refuses every kind of bad input: status code and message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/kernels/io/matrix_market_testing.h"

namespace crout::matrix_market_errors_test {
namespace {

using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kExhausted = absl::StatusCode::kResourceExhausted;

struct BadFile {
  std::string text;
  absl::StatusCode code;
  const char* message;  // expected part of the message
};

std::string Coordinate(const std::string& rest) {
  return "%%MatrixMarket matrix coordinate real general\n" + rest;
}

std::vector<BadFile> BadHeaders() {
  const std::string b = "%%MatrixMarket ";
  return {
      {"", kInvalid, "empty"},
      {"\n", kInvalid, "line 1: not a Matrix Market file"},
      {"\x1f", kInvalid, "line 1: not a Matrix Market file"},
      {"1 1 1\n1 1 1\n", kInvalid, "line 1: not a Matrix Market file"},
      {"%MatrixMarket matrix coordinate real general\n", kInvalid, "line 1: not a Matrix"},
      {" %%MatrixMarket matrix coordinate real general\n", kInvalid, "line 1: not a Matrix"},
      {"%%MatrixMarketX matrix coordinate real general\n", kInvalid, "line 1: not a Matrix"},
      {b + "matrix coordinate real\n", kInvalid, "line 1: the banner has 4 words; it must have 5"},
      {b + "matrix coordinate real general x\n", kInvalid, "the banner has 6 words"},
      {b + "vector coordinate real general\n", kInvalid, "line 1: unknown object 'vector'"},
      {b + "matrix mangled real general\n", kInvalid, "line 1: unknown format 'mangled'"},
      {b + "matrix coordinate real\x01 general\n", kInvalid, "unknown field 'real\\x01'"},
      {b + "matrix coordinate real lower\n", kInvalid, "line 1: unknown symmetry 'lower'"},
      {b + "matrix array pattern general\n", kInvalid, "line 1: 'pattern' has no values"},
      {b + "matrix coordinate pattern skew-symmetric\n", kInvalid, "line 1: 'pattern' has no"},
      {b + "matrix coordinate real hermitian\n", kInvalid, "line 1: 'hermitian' requires"},
      {b + "matrix coordinate pattern Hermitian\n", kInvalid, "line 1: 'hermitian' requires"},
      {b + "matrix array integer hermitian\n", kInvalid, "line 1: 'hermitian' requires"},
      {b + "matrix array complex hermitian\n2 3\n", kInvalid, "must be square, not 2 by 3"},
      {Coordinate(""), kInvalid, "the text ends after line 1 without a size line"},
      {Coordinate("%\n\n%"), kInvalid, "the text ends after line 4 without a size line"},
      {Coordinate("%\n3\n"), kInvalid, "line 3: the size line has 1 numbers, 'coordinate' needs 3"},
      {Coordinate("3 1\n1.5\n"), kInvalid, "line 2: the size line has 2 numbers"},
      {Coordinate("3 1 1 1\n"), kInvalid, "line 2: the size line has 4 numbers"},
      {b + "matrix array real general\n1024\n1\n", kInvalid, "'array' needs 2: rows columns"},
      {Coordinate("x 1 1\n"), kInvalid, "line 2: the size 'x' must be an integer"},
      {Coordinate("1 1.0 1\n"), kInvalid, "line 2: the size '1.0' must be an integer"},
      {Coordinate("-1 1 1\n"), kInvalid, "line 2: the size '-1' must be an integer from 0"},
      {Coordinate("1 1 -1\n"), kInvalid, "line 2: the size '-1' must be an integer from 0"},
      {Coordinate("1 1 9223372036854775808\n"), kInvalid, "line 2: the size '9223372036854775808'"},
      {Coordinate("9223372036854775807 1 1\n"), kInvalid, "the limit is 1048576 by 1048576"},
      {Coordinate("2147483648 2147483648 1\n"), kInvalid, "is 2147483648 by 2147483648"},
      {Coordinate("1 1048577 1\n"), kInvalid, "line 2: the matrix is 1 by 1048577"},
      {Coordinate("1 1 9223372036854775807\n1 1 1\n"), kExhausted,
       "line 2: reading 9223372036854775807"},
      {b + "matrix array real general\n1000000 1000000\n", kExhausted,
       "bytes of memory; the limit is"},
      {b + "matrix coordinate real symmetric\n2 3 1\n", kInvalid, "line 2: a matrix that is not"},
      {b + "matrix array real skew-symmetric\n2 3\n", kInvalid, "must be square, not 2 by 3"},
      {std::string(70000, '%') + "\n", kInvalid, "line 1: the line is longer than 65536 bytes"},
      {Coordinate(std::string(70000, '%')), kInvalid, "line 2: the line is longer than 65536"},
  };
}

std::vector<BadFile> BadComplexEntries() {
  const std::string general = "%%MatrixMarket matrix coordinate complex general\n";
  const std::string skew = "%%MatrixMarket matrix coordinate complex skew-symmetric\n";
  const std::string hermitian = "%%MatrixMarket matrix coordinate complex hermitian\n";
  const std::string array = "%%MatrixMarket matrix array complex general\n";
  const std::string lower = "%%MatrixMarket matrix array complex hermitian\n";
  return {
      {general + "2 2 1\n1 2\n", kInvalid,
       "line 3: the value at row 1, column 2 must be a decimal number, missing"},
      {general + "2 2 1\n1 2 1\n", kInvalid,
       "line 3: the imaginary part at row 1, column 2 must be a decimal number, missing"},
      {general + "2 2 1\n1 2 1 2i\n", kInvalid,
       "the imaginary part at row 1, column 2 must be a decimal number, '2i' given"},
      {general + "2 2 1\n1 2 nan 1\n", kInvalid, "must be finite in float64, 'nan' given"},
      {general + "2 2 1\n1 2 1 1e999\n", kInvalid, "must be finite in float64, '1e999' given"},
      {general + "2 2 1\n1 2 1 -inf\n", kInvalid, "must be finite in float64, '-inf' given"},
      {general + "2 2 1\n1 2 1 2 3\n", kInvalid,
       "line 3: nothing may follow the entry at row 1, column 2, '3' given"},
      {general + "1 1 2\n1 1 0 1e308\n1 1 0 1e308\n", kInvalid,
       "row 1, column 1 (1-based) add up to a value beyond the range"},
      {skew + "2 2 1\n1 1 0 0\n", kInvalid, "line 3: the entry at row 1, column 1 is on the"},
      {hermitian + "2 2 2\n2 1 1 1\n%\n2 2 1 1e-300\n", kInvalid,
       "line 5: the entry at row 2, column 2 is on the diagonal and has an imaginary part"},
      {hermitian + "2 3 1\n1 1 1 1\n", kInvalid, "must be square, not 2 by 3"},
      {array + "2 1\n1 0\n1\n", kInvalid,
       "line 4: the imaginary part at row 2, column 1 must be a decimal number, missing"},
      {array + "1 1\n1 0\n1 0\n", kInvalid, "line 4: more entries than the 1"},
      {lower + "3 3\n1 0\n1 1\n1 1\n1 0\n% c\n1 1\n1 -1\n", kInvalid,
       "line 9: the entry at row 3, column 3 is on the diagonal and has an imaginary part"},
      {lower + "2 2\n1 1\nx\n", kInvalid, "line 3: the entry at row 1, column 1 is on the"},
      {lower + "2 2\n1 0\nx\n", kInvalid, "line 4: the value at row 2, column 1 must be a"},
  };
}

std::vector<BadFile> BadEntries() {
  const std::string skew = "%%MatrixMarket matrix coordinate real skew-symmetric\n";
  const std::string integer = "%%MatrixMarket matrix coordinate integer general\n";
  const std::string pattern = "%%MatrixMarket matrix coordinate pattern general\n";
  const std::string array = "%%MatrixMarket matrix array real general\n";
  const std::string lower = "%%MatrixMarket matrix array real symmetric\n";
  return {
      {Coordinate("2 2 1\n%\n\n0 1 1\n"), kInvalid,
       "line 5: the row index must be an integer from 1 to 2, '0' given"},
      {Coordinate("2 2 1\n3 1 1\n"), kInvalid,
       "line 3: the row index must be an integer from 1 to 2, '3' given"},
      {Coordinate("2 2 1\n-1 1 1\n"), kInvalid, "'-1' given"},
      {Coordinate("2 2 1\n+-1 1 1\n"), kInvalid, "'+-1' given"},
      {Coordinate("2 2 1\n1.0 1 1\n"), kInvalid, "'1.0' given"},
      {Coordinate("2 2 1\n4294967297 1 1\n"), kInvalid, "'4294967297' given"},
      {Coordinate("2 2 1\n18446744073709551617 1 1\n"), kInvalid, "'18446744073709551617' given"},
      {Coordinate("2 2 1\nzero 1 1\n"), kInvalid, "line 3: the row index must be"},
      {Coordinate("2 3 1\n1 4 1\n"), kInvalid,
       "line 3: the column index must be an integer from 1 to 3, '4' given"},
      {Coordinate("2 2 1\n1\n"), kInvalid,
       "line 3: the column index must be an integer from 1 to 2, missing"},
      {Coordinate("0 0 1\n1 1 1\n"), kInvalid,
       "line 3: the row index must be an integer from 1 to 0"},
      {Coordinate("2 2 1\n1 2\n"), kInvalid,
       "line 3: the value at row 1, column 2 must be a decimal number, missing"},
      {Coordinate("2 2 1\n1 2 pi\n"), kInvalid, "must be a decimal number, 'pi' given"},
      {Coordinate("2 2 1\n1 2 1.0D3\n"), kInvalid, "must be a decimal number, '1.0D3' given"},
      {Coordinate("2 2 1\n1 2 0x10\n"), kInvalid, "must be a decimal number, '0x10' given"},
      {Coordinate("2 2 1\n1 2 1e\n"), kInvalid, "must be a decimal number, '1e' given"},
      {Coordinate("2 2 1\n1 2 --1\n"), kInvalid, "must be a decimal number, '--1' given"},
      {Coordinate("2 2 1\n1 2 +-1\n"), kInvalid, "must be a decimal number, '+-1' given"},
      {Coordinate("2 2 1\n1 2 ++1\n"), kInvalid, "must be a decimal number, '++1' given"},
      {Coordinate("2 2 1\n1 2 1,5\n"), kInvalid, "must be a decimal number, '1,5' given"},
      {Coordinate(std::string("2 2 1\n1 2 1\0\n", 13)), kInvalid,
       "must be a decimal number, '1\\x00' given"},
      {Coordinate("2 2 1\n2 1 nan\n"), kInvalid,
       "line 3: the value at row 2, column 1 must be finite in float64, 'nan' given"},
      {Coordinate("2 2 1\n2 1 -Inf\n"), kInvalid, "must be finite in float64, '-Inf' given"},
      {Coordinate("2 2 1\n2 1 +infinity\n"), kInvalid, "must be finite in float64"},
      {Coordinate("2 2 1\n2 1 1e999\n"), kInvalid, "must be finite in float64, '1e999' given"},
      {Coordinate("2 2 1\n2 1 -1.8e308\n"), kInvalid, "must be finite in float64"},
      {Coordinate("2 2 1\n2 1 1 1\n"), kInvalid,
       "line 3: nothing may follow the entry at row 2, column 1, '1' given"},
      {Coordinate("2 2 1\n2 1 1 % c\n"), kInvalid, "line 3: nothing may follow"},
      {pattern + "2 2 1\n2 1 1 1\n", kInvalid, "line 3: nothing may follow"},
      {pattern + "2 2 1\n2 1 x\n", kInvalid, "must be a decimal number, 'x'"},
      {integer + "2 2 1\n2 1 1.5\n", kInvalid,
       "line 3: the value at row 2, column 1 must be an integer"},
      {integer + "2 2 1\n2 1 1e3\n", kInvalid,
       "must be an integer, because the banner declares 'integer', '1e3' given"},
      {integer + "2 2 1\n2 1 -inf\n", kInvalid, "must be finite"},
      {integer + "2 2 1\n2 1 1" + std::string(309, '0') + "\n", kInvalid, "must be finite"},
      {skew + "2 2 1\n2 2 0\n", kInvalid,
       "line 3: the entry at row 2, column 2 is on the diagonal"},
      {Coordinate("2 2 2\n1 1 1\n"), kInvalid, "line 3: the text ends after 1 of the 2 entries"},
      {Coordinate("2 2 1\n"), kInvalid, "the text ends after 0 of the 1 entries"},
      {Coordinate("2 2 1\n1 1 1\n%\n\n1 2 1\n2 2 x\n"), kInvalid,
       "line 6: more entries than the 1 that the size line declares"},
      {Coordinate("2 2 0\n1 1 1\n"), kInvalid, "line 3: more entries than the 0"},
      {Coordinate("1 1 2\n1 1 1e308\n1 1 1e308\n"), kInvalid,
       "row 1, column 1 (1-based) add up to a value beyond"},
      {Coordinate("2 2 2\n1 1 1\n" + std::string(70000, ' ') + "\n"), kInvalid,
       "line 4: the line is longer than 65536"},
      {Coordinate("2 2 1\n1 1 0." + std::string(70000, '1') + "\n"), kInvalid,
       "line 3: the line is longer"},
      {Coordinate("2 2 1\n1 1 1\n%" + std::string(3 << 20, 'x')), kInvalid,
       "line 4: the line is longer"},
      {array + "2 2\n1\n2\n3\n", kInvalid, "line 5: the text ends after 3 of the 4 entries"},
      {array + "1 1\n1\n\n2\n", kInvalid, "line 5: more entries than the 1"},
      {array + "1 1\n1\nx\n", kInvalid,
       "line 4: nothing may follow the 1 values that the size line declares, 'x'"},
      {array + "2 2\n1\n2\n3\nnan\n", kInvalid,
       "line 6: the value at row 2, column 2 must be finite"},
      {array + "2 2\n1 2\n", kInvalid,
       "line 3: nothing may follow the entry at row 1, column 1, '2' given"},
      {lower + "3 3\n1\n2\n3\n4\ninf\n", kInvalid,
       "line 7: the value at row 3, column 2 must be finite"},
  };
}

TEST(MatrixMarketErrorsTest, ReturnsTheErrorOfEachBadFile) {
  ThreadPool pool(2);
  std::vector<BadFile> files = BadHeaders();
  for (const std::vector<BadFile>& more : {BadEntries(), BadComplexEntries()}) {
    files.insert(files.end(), more.begin(), more.end());
  }
  for (const BadFile& file : files) {
    SCOPED_TRACE(file.text.substr(0, 200));
    const ReadResult result = ReadWhole(file.text);
    EXPECT_EQ(result.status.code(), file.code);
    EXPECT_THAT(std::string(result.status.message()), HasSubstr(file.message));
    EXPECT_LT(result.status.message().size(), 300u);
    if (file.text.size() > 100000) continue;  // too many pieces of 3 bytes
    MatrixMarketLimits limits;
    limits.segment_bytes = 10;
    EXPECT_EQ(ReadPieces(
                  file.text, [] { return 3; }, limits, &pool)
                  .status,
              result.status);
    EXPECT_EQ(ReadWhole(Gzip(file.text), limits, &pool).status, result.status);
  }
}

TEST(MatrixMarketErrorsTest, RefusesComplexFilesIfOnlyRealOnesAreAllowed) {
  MatrixMarketLimits limits;
  limits.complex = false;
  const std::string banner = "%%MatrixMarket matrix coordinate complex ";
  for (const char* symmetry : {"general\n", "hermitian\n"}) {
    const absl::Status status = ReadWhole(banner + symmetry, limits).status;
    EXPECT_EQ(status.code(), kInvalid);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("line 1: the matrix is complex; the requested type is real"));
  }
  EXPECT_TRUE(ReadWhole(Coordinate("1 1 1\n1 1 1\n"), limits).status.ok());
}

TEST(MatrixMarketErrorsTest, ReportsTheFirstErrorOfTheFile) {
  ThreadPool pool(4);
  const std::string good(20000, '\n');
  std::string text = Coordinate("9 9 100\n") + good + "1 1 first\n";
  for (int i = 0; i < 50; ++i) text += "1 1 later\n";
  MatrixMarketLimits limits;
  limits.segment_bytes = 64;
  for (int i = 0; i < 50; ++i) {
    const absl::Status status = ReadWhole(text, limits, &pool).status;
    ASSERT_THAT(std::string(status.message()), HasSubstr("line 20003: "));
    ASSERT_THAT(std::string(status.message()), HasSubstr("'first' given"));
  }
}

TEST(MatrixMarketErrorsTest, RefusesDimensionsBeyondTheLimits) {
  MatrixMarketLimits limits;
  limits.max_rows = 3;
  limits.max_columns = 2;
  EXPECT_TRUE(ReadWhole(Coordinate("3 2 0\n"), limits).status.ok());
  EXPECT_EQ(ReadWhole(Coordinate("4 2 0\n"), limits).status.code(), kInvalid);
  EXPECT_EQ(ReadWhole(Coordinate("3 3 0\n"), limits).status.code(), kInvalid);
  limits.max_rows = limits.max_columns = int64_t{1} << 40;
  EXPECT_EQ(ReadWhole(Coordinate("2147483648 1 0\n"), limits).status.code(), kInvalid);
  EXPECT_TRUE(ReadWhole(Coordinate("2147483647 1 0\n"), limits).status.ok());
  limits.max_peak_bytes = 999;
  EXPECT_EQ(ReadWhole(Coordinate("1 1 100\n"), limits).status.code(), kExhausted);
}

TEST(MatrixMarketErrorsTest, DetectsDamagedGzip) {
  const std::string text = RandomMatrixText(100, 3000, 1);
  const std::string gzip = Gzip(text);
  for (const size_t length : {size_t{2}, size_t{5}, gzip.size() / 2, gzip.size() - 1}) {
    const absl::Status status = ReadWhole(gzip.substr(0, length)).status;
    EXPECT_EQ(status.code(), kInvalid);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("the gzip stream ends within a member after"));
  }
  const absl::Status trailing = ReadWhole(gzip + "more").status;
  EXPECT_EQ(trailing.code(), kInvalid);
  EXPECT_THAT(std::string(trailing.message()), HasSubstr("damaged"));
  std::string wrong_sum = gzip;
  wrong_sum[wrong_sum.size() - 6] ^= 1;
  EXPECT_THAT(std::string(ReadWhole(wrong_sum).status.message()), HasSubstr("damaged"));
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {  // a flipped bit after the gzip header must be detected
    std::string damaged = gzip;
    damaged[10 + random() % (gzip.size() - 10)] ^= 1 << random() % 8;
    EXPECT_EQ(ReadWhole(damaged).status.code(), kInvalid);
  }
}

// An error in the text is reported, rather than damage in a later part of the gzip stream.
TEST(MatrixMarketErrorsTest, ReportsFaultyLineBeforeDamagedGzip) {
  const std::string text = Coordinate("9 9 9\n1 1 1\n1 1 x\n1 1") + RandomMatrixText(9, 9, 1);
  const std::string gzip = Gzip(text);
  for (const size_t segment_bytes : {1, 50, 1 << 20}) {
    MatrixMarketLimits limits;
    limits.segment_bytes = segment_bytes;
    const absl::Status status = ReadWhole(gzip.substr(0, gzip.size() - 8), limits).status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("line 4: "));
  }
}

TEST(MatrixMarketErrorsTest, RefusesGzipThatExpandsTooFar) {
  ThreadPool pool(2);
  const std::string bomb = Gzip(Coordinate("1 1 1\n1 1 1\n") + std::string(64 << 20, '\n'), 9);
  ASSERT_LT(bomb.size(), 100000u);
  const absl::Status status = ReadWhole(bomb, {}, &pool).status;
  EXPECT_EQ(status.code(), kInvalid);
  EXPECT_THAT(std::string(status.message()), HasSubstr("expands to more than 200 times"));
  MatrixMarketLimits limits;
  limits.max_gzip_ratio = 2000;
  EXPECT_TRUE(ReadWhole(bomb, limits, &pool).status.ok());
  // Up to 1 MiB, any ratio is accepted.
  const std::string small = Gzip(Coordinate("1 1 1\n1 1 1\n") + std::string(1000000, '\n'), 9);
  EXPECT_TRUE(ReadWhole(small).status.ok());
}

}  // namespace
}  // namespace crout::matrix_market_errors_test
