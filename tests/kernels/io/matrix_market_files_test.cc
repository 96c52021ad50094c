// SPDX-License-Identifier: Apache-2.0

// Tests the reader with files from applications in $CROUT_MATRICES, by default ../shared/matrices
// beside the source tree. Skipped without them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "tests/kernels/io/matrix_market_testing.h"

namespace crout::matrix_market_files_test {
namespace {

namespace fs = std::filesystem;

fs::path Directory() {
  const char* const given = std::getenv("CROUT_MATRICES");  // NOLINT(concurrency-mt-unsafe)
  return given != nullptr ? fs::path(given)
                          : fs::path(CROUT_SOURCE_DIR).parent_path() / "shared" / "matrices";
}

std::string Bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Returns the text of a file, gzipped or not. Uses zlib instead of the reader.
std::string Text(const fs::path& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  std::string text;
  std::vector<char> part(1 << 16);
  for (int n; (n = gzread(file, part.data(), part.size())) > 0;) text.append(part.data(), n);
  gzclose(file);
  return text;
}

// Counts nonzeros as the index does: in both triangles, without stored zeros.
int64_t Nonzeros(const ReadResult& result) {
  const bool sparse = result.header->coordinate;
  const auto& values = sparse ? result.sparse.value : result.dense;
  const auto& imaginary = sparse ? result.sparse.imaginary : result.dense_imaginary;
  int64_t count = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != 0 || (!imaginary.empty() && imaginary[i] != 0)) ++count;
  }
  return count;
}

class MatrixMarketFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(Directory() / "INDEX.tsv")) {
      GTEST_SKIP() << "no matrices in " << Directory() << ": set CROUT_MATRICES";
    }
  }
};

TEST_F(MatrixMarketFilesTest, ReadsEveryMatrixOfTheIndex) {
  ThreadPool pool(3);
  std::ifstream index(Directory() / "INDEX.tsv");
  std::string line;
  std::getline(index, line);
  int real = 0;
  int complex = 0;
  while (std::getline(index, line)) {
    const std::vector<std::string> cells = absl::StrSplit(line, '\t');
    const std::string& name = cells[0];
    if (name.find(".mtx") == std::string::npos || cells[2].empty()) continue;
    SCOPED_TRACE(name);
    const std::string bytes = Bytes(Directory() / name);
    const ReadResult result = ReadPieces(
        bytes, [] { return 100000; }, {}, &pool);
    ASSERT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(result.header->rows, std::stoll(cells[2]));
    EXPECT_EQ(result.header->columns, std::stoll(cells[2]));
    EXPECT_EQ(Nonzeros(result), std::stoll(cells[3]));
    EXPECT_EQ(Difference(result, ReadNaively(Text(Directory() / name))), "");
    ++(result.header->complex() ? complex : real);
  }
  EXPECT_GT(real, 400);
  EXPECT_GT(complex, 10);
}

TEST_F(MatrixMarketFilesTest, ReadsEveryRightHandSide) {
  int count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(Directory())) {
    const std::string name = entry.path().filename();
    if (entry.path().parent_path().filename() == "malformed_edge") continue;
    if (name.find("mtx") == std::string::npos) continue;
    const std::string text = Text(entry.path());
    if (text.rfind("%%MatrixMarket matrix array real", 0) != 0) continue;
    SCOPED_TRACE(entry.path());
    EXPECT_EQ(Difference(ReadWhole(Bytes(entry.path())), ReadNaively(text)), "");
    ++count;
  }
  EXPECT_GT(count, 300);
}

struct Verdict {
  absl::StatusCode code;
  const char* reason;  // part of the error message, or why the file is accepted
};

constexpr auto kOk = absl::StatusCode::kOk;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

const std::map<std::string, Verdict>& Verdicts() {
  static const auto* const verdicts = new std::map<std::string, Verdict>{
      {"cholmod_fullcrud1.mtx", {kInvalid, "line 1: not a Matrix Market file"}},
      {"cholmod_fullcrud2.mtx", {kInvalid, "line 3: the value at row 1, column 1 must be a"}},
      {"cholmod_fullcsa.mtx", {kOk, "complex, with blank lines"}},
      {"cholmod_fullrsa.mtx", {kOk, "blank lines and comments between values"}},
      {"cholmod_mangle1.mtx", {kInvalid, "line 1: unknown object 'junk'"}},
      {"cholmod_rza.mtx", {kOk, "skew-symmetric integers"}},
      {"ecs231_noheader_mahindas.mtx", {kInvalid, "line 1: not a Matrix Market file"}},
      {"lagraph_A.mtx", {kOk, "a blank after the column index"}},
      {"lagraph_A2.mtx", {kOk, "%%GraphBLAS is a comment"}},
      {"lagraph_comments_cover.mtx", {kOk, "comments"}},
      {"lagraph_comments_full.mtx", {kOk, "comments"}},
      {"lagraph_full.mtx", {kOk, "values without an integer part"}},
      {"lagraph_full_noheader.mtx", {kInvalid, "line 1: not a Matrix Market file"}},
      {"lagraph_full_symmetric.mtx", {kOk, "a packed lower triangle"}},
      {"lagraph_mangled1.mtx", {kInvalid, "line 1: unknown object 'mangled'"}},
      {"lagraph_mangled10.mtx", {kInvalid, "ends after 2 of the 3 entries"}},
      {"lagraph_mangled11.mtx", {kInvalid, "line 5: the column index must be an integer"}},
      {"lagraph_mangled12.mtx",
       {kInvalid, "line 5: the value at row 1, column 1 must be a decimal number, missing"}},
      {"lagraph_mangled14.mtx", {kOk, "duplicates add up"}},
      {"lagraph_mangled16.mtx", {kInvalid, "line 5: nothing may follow the entry"}},
      {"lagraph_mangled2.mtx", {kInvalid, "line 1: unknown format 'mangled'"}},
      {"lagraph_mangled5.mtx", {kInvalid, "line 1: 'hermitian' requires"}},
      {"lagraph_mangled6.mtx", {kInvalid, "line 1: 'hermitian' requires"}},
      {"lagraph_mangled7.mtx",
       {kInvalid, "line 5: the value at row 1, column 1 must be a decimal number, missing"}},
      {"lagraph_mangled8.mtx", {kInvalid, "line 4: the size line has 1 numbers"}},
      {"lagraph_mangled_skew.mtx", {kOk, "its type is in a comment, the values are fine"}},
      {"lagraph_matrix_fp32_structure.mtx", {kOk, "a pattern"}},
      {"lagraph_matrix_fp64.mtx",
       {kInvalid, "line 7: the value at row 4, column 1 must be finite"}},
      {"lagraph_matrix_int16.mtx", {kOk, "integers"}},
      {"lagraph_matrix_uint16.mtx", {kOk, "integers"}},
      {"lagraph_matrix_uint32.mtx", {kOk, "integers beyond int32"}},
      {"lagraph_sample2.mtx", {kOk, "a pattern"}},
      {"lagraph_skew_int16.mtx", {kOk, "skew-symmetric integers"}},
      {"lagraph_skew_int64.mtx", {kOk, "2^63 - 1, rounded to float64"}},
      {"lagraph_structure.mtx", {kOk, "a pattern"}},
      {"lagraph_west0067_jumbled.mtx", {kOk, "entries in any order, comments after the size line"}},
      {"lagraph_west0067_noheader.mtx", {kInvalid, "line 1: not a Matrix Market file"}},
      {"mongoose_bad_dimensions.mtx", {kInvalid, "ends after line 3 without a size line"}},
      {"mongoose_bad_matrix_type.mtx", {kInvalid, "line 3: the value at row 1, column 1 must"}},
      {"paru_a2.mtx", {kInvalid, "the row index must be an integer from 1 to 2, '0' given"}},
      {"paru_az88.mtx", {kInvalid, "the row index must be an integer from 1 to 4, '0' given"}},
      {"paru_c2.mtx",
       {kInvalid, "line 9: the row index must be an integer from 1 to 2, '0' given"}},
      {"resolve_ScaleMicrogrid_Residual_head_01.mtx",
       {kInvalid, "line 3: the size line has 2 numbers, 'coordinate' needs 3"}},
      {"resolve_b_spd01.mtx", {kInvalid, "line 3: the size line has 1 numbers, 'array' needs 2"}},
  };
  return *verdicts;
}

TEST_F(MatrixMarketFilesTest, ReturnsTheExpectedStatusOfEveryMalformedFile) {
  for (const auto& entry : fs::directory_iterator(Directory() / "malformed_edge")) {
    const std::string name = entry.path().filename();
    SCOPED_TRACE(name);
    const auto verdict = Verdicts().find(name);
    ASSERT_NE(verdict, Verdicts().end()) << "judge this file and add it to the table";
    const ReadResult result = ReadWhole(Bytes(entry.path()));
    EXPECT_EQ(result.status.code(), verdict->second.code) << result.status;
    if (verdict->second.code == kOk) {
      EXPECT_EQ(Difference(result, ReadNaively(Text(entry.path()))), "");
    } else {
      EXPECT_THAT(std::string(result.status.message()),
                  ::testing::HasSubstr(verdict->second.reason));
    }
  }
}

}  // namespace
}  // namespace crout::matrix_market_files_test
