// SPDX-License-Identifier: Apache-2.0

// Tests the readers of .npy, .npz and plain text files, including hostile files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <complex>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/formats/byte_input.h"
#include "client/cli/formats/npy.h"
#include "client/cli/formats/npz.h"
#include "client/cli/formats/text_matrix.h"
#include "client/cli/output/array_writer.h"

namespace crout::cli::cli_arrays_test {
namespace {

using Complex = std::complex<double>;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Reads from a string. Returns at most `piece` bytes per read.
class StringInput : public ByteInput {
 public:
  explicit StringInput(std::string text, size_t piece = 1000)
      : text_(std::move(text)), piece_(piece) {}

  absl::StatusOr<size_t> Read(absl::Span<std::byte> to) override {
    largest_ = std::max(largest_, to.size());
    const size_t count = std::min({to.size(), piece_, text_.size() - at_});
    std::memcpy(to.data(), text_.data() + at_, count);
    at_ += count;
    return count;
  }
  // Returns the largest number of bytes that were requested, and therefore allocated, at once.
  size_t largest() const { return largest_; }

 private:
  const std::string text_;
  const size_t piece_;
  size_t at_ = 0;
  size_t largest_ = 0;
};

std::string Npy(const std::string& header, const std::string& data, char version = 1) {
  std::string text("\x93NUMPY", 6);
  text += version;
  text += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    text += static_cast<char>(header.size() >> (8 * i) & 255);
  }
  return text + header + data;
}

std::string Header(const std::string& descr, const std::string& shape, bool fortran = false) {
  return absl::StrCat("{'descr': '", descr, "', 'fortran_order': ", fortran ? "True" : "False",
                      ", 'shape': ", shape, ", }   \n");
}

template <class T>
std::string Bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

absl::StatusOr<Array> Read(const std::string& text, size_t piece = 1000) {
  StringInput input(text, piece);
  return ReadNpy(&input);
}

// Returns the values in row-major order.
std::vector<Complex> Values(const Array& array) {
  std::vector<Complex> values;
  for (int64_t i = 0; i < array.rows; ++i) {
    for (int64_t j = 0; j < array.cols; ++j) values.push_back(array.At(i, j));
  }
  return values;
}

TEST(NpyTest, ReadsBothOrdersInPiecesOfAnySize) {
  const std::string data = Bytes<double>({1, 2, 3, 4, 5, 6});
  for (const size_t piece : {1, 7, 1000}) {
    const auto rows = Read(Npy(Header("<f8", "(2, 3)"), data), piece);
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_EQ(rows->dtype, Dtype::kFloat64);
    EXPECT_THAT(Values(*rows), ElementsAre(1, 2, 3, 4, 5, 6));
    const auto columns = Read(Npy(Header("<f8", "(2, 3)", true), data), piece);
    ASSERT_TRUE(columns.ok()) << columns.status();
    EXPECT_THAT(Values(*columns), ElementsAre(1, 3, 5, 2, 4, 6));
  }
  for (const char version : {2, 3}) {
    EXPECT_TRUE(Read(Npy(Header("<f8", "(2, 3)"), data, version)).ok());
  }
}

TEST(NpyTest, ReadsEveryTypeOfNumber) {
  const auto column = [](const std::string& descr, const std::string& data) {
    const auto array = Read(Npy(Header(descr, "(2,)"), data));
    EXPECT_TRUE(array.ok()) << descr << array.status();
    EXPECT_EQ(array->cols, 1);
    return Values(*array);
  };
  EXPECT_THAT(column("<f4", Bytes<float>({0.5F, -2})), ElementsAre(0.5, -2));
  EXPECT_THAT(column("<c8", Bytes<std::complex<float>>({{1, 2}, {3, 4}})),
              ElementsAre(Complex(1, 2), Complex(3, 4)));
  EXPECT_THAT(column("=c16", Bytes<Complex>({{1, 2}, {3, 4}})),
              ElementsAre(Complex(1, 2), Complex(3, 4)));
  EXPECT_THAT(column("|i1", Bytes<int8_t>({-1, 2})), ElementsAre(-1, 2));
  EXPECT_THAT(column("|b1", Bytes<uint8_t>({0, 1})), ElementsAre(0, 1));
  EXPECT_THAT(column("<u2", Bytes<uint16_t>({65535, 1})), ElementsAre(65535, 1));
  EXPECT_THAT(column("<i4", Bytes<int32_t>({-7, 1})), ElementsAre(-7, 1));
  EXPECT_THAT(column("<i8", Bytes<int64_t>({-7, 1})), ElementsAre(-7, 1));
  EXPECT_THAT(column("<u8", Bytes<uint64_t>({1ULL << 63, 1})),
              ElementsAre(9223372036854775808.0, 1));
  // Half precision: 1.5, the negative smallest subnormal number, infinity, -2.
  EXPECT_THAT(column("<f2", Bytes<uint16_t>({0x3e00, 0x8001})), ElementsAre(1.5, -1.0 / 16777216));
  EXPECT_THAT(column("<f2", Bytes<uint16_t>({0x7c00, 0xc000})),
              ElementsAre(std::numeric_limits<double>::infinity(), -2));
}

TEST(NpyTest, TurnsBigEndianBytesRound) {
  std::string data = Bytes<double>({1.5});
  std::reverse(data.begin(), data.end());
  EXPECT_THAT(Values(*Read(Npy(Header(">f8", "(1, 1)"), data))), ElementsAre(1.5));
  std::string parts = Bytes<float>({2, 1});  // after the reversal, the real part is first
  std::reverse(parts.begin(), parts.end());
  EXPECT_THAT(Values(*Read(Npy(Header(">c8", "(1, 1)"), parts))), ElementsAre(Complex(1, 2)));
}

TEST(NpyTest, WhatItWritesIsRead) {
  for (const int64_t rows : {int64_t{0}, int64_t{3}}) {
    const std::string text = NpyHeader(Element::kComplex64, rows, 2);
    EXPECT_EQ(text.size() % 64, 0u);
    const auto array = Read(text + std::string(static_cast<size_t>(rows) * 16, '\0'));
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_EQ(array->dtype, Dtype::kComplex64);
    EXPECT_EQ(array->layout, StorageOrder::kColumnMajor);
    EXPECT_EQ(array->rows, rows);
    EXPECT_EQ(array->cols, 2);
  }
}

TEST(NpyTest, HostileFilesAreRefused) {
  const std::string eight(8, 'x');
  const std::vector<std::pair<std::string, std::string>> hostile = {
      {"", "ends after 0"},
      {std::string("\x93NUMPZ\x01\x00", 8), "does not start"},
      {std::string("\x93NUMPY\x04\x00", 8), "does not start"},
      {std::string("\x93NUMPY\x01\x00\xff", 9), "ends after 1 of 2"},
      {std::string("\x93NUMPY\x01\x00\x10\x00{", 11), "ends after 1 of 16"},
      {std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12), "header of 4294967295 bytes"},
      {Npy("", eight), "not a dictionary"},
      {Npy("{", eight), "lacks a key"},
      {Npy("{'descr': '<f8'", eight), "lacks a comma"},
      {Npy("{'descr': '<f8', 'descr': '<f8'}", eight), "duplicate or unknown key"},
      {Npy("{'descr': '<f8', 'x': 1}", eight), "duplicate or unknown key"},
      {Npy("{'descr': '<f8', 'shape': (1,)}", eight), "lacks descr, fortran_order or shape"},
      {Npy("{'descr': [('a', '<f8')], }", eight), "records"},
      {Npy(Header("<f8", "(1,)") + "x", eight), "text after the dictionary"},
      {Npy("{'descr': '<f8', 'fortran_order': 1, 'shape': (1,)}", eight), "neither True nor False"},
      {Npy(Header("<f8", "(-1,)"), eight), "not a tuple of sizes"},
      {Npy(Header("<f8", "1"), eight), "not a tuple of sizes"},
      {Npy(Header("<f8", "(1 2)"), eight), "not a tuple of sizes"},
      {Npy(Header("<f8", "(99999999999999999999, 1)"), eight), "not a tuple of sizes"},
      {Npy(Header("<f8", "()"), eight), "0 dimensions"},
      {Npy(Header("<f8", "(1, 1, 1)"), eight), "3 dimensions"},
      {Npy(Header("<f8", "(9223372036854775807, 9223372036854775807)"), eight),
       "do not fit into memory"},
      {Npy(Header("<f8", "(4294967296, 4294967296)"), eight), "do not fit into memory"},
      {Npy(Header("<f8", "(2,)"), eight), "ends after 8 of 16"},
      {Npy(Header("<f8", "(1,)"), eight + "x"), "data after the last element"},
      {Npy(Header("<f16", "(1,)"), eight), "type '<f16'"},
      {Npy(Header("|O", "(1,)"), eight), "is not a number"},
      {Npy(Header("<U2", "(1,)"), eight), "type '<U2'"},
      {Npy(Header("?f8", "(1,)"), eight), "type '?f8'"},
      {Npy(Header("<f-8", "(1,)"), eight), "type '<f-8'"},
  };
  for (const auto& [text, why] : hostile) {
    const auto array = Read(text);
    EXPECT_EQ(array.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(array.status().message()), HasSubstr(why)) << text;
  }
}

TEST(NpyTest, MemoryGrowsWithWhatArrives) {
  StringInput input(Npy(Header("<f8", "(1000000, 1000000)"), std::string(100, '\0')));
  EXPECT_FALSE(ReadNpy(&input).ok());
  EXPECT_LE(input.largest(), size_t{1} << 20);
}

absl::StatusOr<Array> ReadText(const std::string& text, size_t piece = 1000) {
  StringInput input(text, piece);
  return ReadTextMatrix(&input);
}

TEST(TextMatrixTest, ReadsRowsHoweverTheyAreSeparated) {
  for (const size_t piece : {1, 3, 1000}) {
    const auto array = ReadText("# by hand\n1 -2.5e3\t+3\r\n\n4,5;6 # the end", piece);
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_EQ(array->rows, 2);
    EXPECT_EQ(array->dtype, Dtype::kFloat64);
    EXPECT_THAT(Values(*array), ElementsAre(1, -2500, 3, 4, 5, 6));
  }
  EXPECT_THAT(Values(*ReadText("1e-999 -1e-999 inf")),
              ElementsAre(0, 0, std::numeric_limits<double>::infinity()));
}

TEST(TextMatrixTest, ReadsComplexNumbersAsNumPyWritesThem) {
  const auto array = ReadText(" (1.5e+00+2.5e-01j) (-1-2j)\n3j 4\n");
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->dtype, Dtype::kComplex128);
  EXPECT_THAT(Values(*array), ElementsAre(Complex(1.5, 0.25), Complex(-1, -2), Complex(0, 3), 4));
}

TEST(TextMatrixTest, WhatIsNoMatrixIsRefusedWithItsLine) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"", "no numbers"},
      {"# nothing\n", "no numbers"},
      {"1 2\n\n3\n", "line 3 has 1"},
      {"1 x\n", "line 1: 'x'"},
      {"1\n1e999\n", "line 2: '1e999'"},
      {"(1+2j\n", "'(1+2j'"},
      {"1+2\n", "'1+2'"},
      {"1 2 3i\n", "'3i'"},
      {"+-1\n", "'+-1'"},
      {"1\n\xc3\xa9t\xc3\xa9\n", "line 2: '\xc3\xa9t\xc3\xa9'"},
      {std::string("\xfd"
                   "7zXZ\0\0\x04",
                   8),
       "Unpack a file"},
      {"\x1b[2J\n", "Unpack a file"},
      {"BZh91AY&SY\x8f\x01", "Unpack a file"},
      {"1+2jj\n", "'1+2jj'"},
  };
  for (const auto& [text, why] : wrong) {
    const auto array = ReadText(text);
    EXPECT_EQ(array.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(array.status().message()), HasSubstr(why)) << text;
  }
}

class NpzTest : public ::testing::Test {
 protected:
  ~NpzTest() override { unlink(path_.c_str()); }

  // Writes an archive with two arrays: A, the number 1, and b, two zeros.
  void WriteTwo() const {
    auto writer = NpzWriter::Open(path_);
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE((*writer)->BeginArray("A").ok());
    ASSERT_TRUE((*writer)->Write(NpyHeader(Element::kFloat64, 1, 1) + Bytes<double>({1})).ok());
    ASSERT_TRUE((*writer)->BeginArray("b").ok());
    ASSERT_TRUE((*writer)->Write(NpyHeader(Element::kFloat64, 2, 1) + std::string(16, '\0')).ok());
    ASSERT_TRUE((*writer)->Close().ok());
  }
  std::string Contents() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const std::string path_ = ::testing::TempDir() + "/crout_npz_test." + std::to_string(getpid());
};

TEST_F(NpzTest, ArraysAreChosenByName) {
  WriteTwo();
  EXPECT_EQ(std::get<Array>(*ReadNpz(path_, "A")).rows, 1);
  EXPECT_EQ(std::get<Array>(*ReadNpz(path_, "b")).rows, 2);
  EXPECT_THAT(std::string(ReadNpz(path_, "").status().message()), HasSubstr("has A, b. "));
  EXPECT_THAT(std::string(ReadNpz(path_, "c").status().message()),
              HasSubstr("has A, b, but no c. "));
}

// If a byte is wrong or missing, the reader returns an error or the correct array. Sanitizers check
// the memory accesses.
TEST_F(NpzTest, DamagedArchivesAreRefused) {
  WriteTwo();
  const std::string whole = Contents();
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(~damaged[at]);
    std::ofstream(path_, std::ios::binary) << damaged;
    const auto array = ReadNpz(path_, "A");
    if (array.ok()) {
      EXPECT_THAT(Values(std::get<Array>(*array)), ElementsAre(1)) << at;
    }
    std::ofstream(path_, std::ios::binary) << whole.substr(0, at);
    const auto cut = ReadNpz(path_, "A");  // the last two bytes of an archive contain no data
    EXPECT_EQ(cut.ok(), at + 3 >= whole.size()) << at;
  }
}

TEST(ArrayTest, TypesAreChangedButComplexStaysSo) {
  Array array = *ReadText("1.1 2\n");
  auto narrow = Array(array).As(Dtype::kFloat32);
  ASSERT_TRUE(narrow.ok());
  EXPECT_THAT(Values(*narrow), ElementsAre(Complex(1.1F), 2));
  auto complex = Array(array).As(Dtype::kComplex128);
  ASSERT_TRUE(complex.ok());
  EXPECT_THAT(Values(*complex), ElementsAre(1.1, 2));
  EXPECT_FALSE((*std::move(complex)).As(Dtype::kFloat64).ok());
}

}  // namespace
}  // namespace crout::cli::cli_arrays_test
