// SPDX-License-Identifier: Apache-2.0

// Tests batches on the command line: directories, files and tars of matrices, including hostile
// ones.
#include "client/cli/input/batch_files.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/exit_codes.h"
#include "client/cli/formats/byte_input.h"
#include "client/cli/formats/tar_reader.h"
#include "tests/support/gzip.h"

namespace crout::cli::cli_batch_files_test {
namespace {

namespace fs = std::filesystem;
using crout::testing::Gzip;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kDense[] = "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n";
constexpr char kSparse[] =
    "%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 4\n2 1 1\n1 1 1\n";
constexpr char kComplex[] = "%%MatrixMarket matrix array complex general\n1 1\n1 -2\n";

// Returns a tar header. Its fields may be invalid.
std::string Header(const std::string& name, const std::string& size, char type = '0') {
  std::string block(512, '\0');
  block.replace(0, name.size(), name);
  block.replace(124, size.size(), size);
  block[156] = type;
  block.replace(257, 8,
                std::string("ustar\0"
                            "00",
                            8));
  block.replace(148, 8, "        ");
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  std::array<char, 8> digits{};
  std::snprintf(digits.data(), digits.size(), "%06o", sum);
  block.replace(148, 7, digits.data(), 7);
  return block;
}

std::string Octal(size_t size) {
  std::array<char, 13> digits{};
  std::snprintf(digits.data(), digits.size(), "%011zo", size);
  return digits.data();
}

std::string Padded(std::string bytes) {
  bytes.resize((bytes.size() + 511) / 512 * 512);
  return bytes;
}

std::string Entry(const std::string& name, const std::string& bytes, char type = '0') {
  return Header(name, Octal(bytes.size()), type) + Padded(bytes);
}

const std::string& End() {
  static const std::string end(1024, '\0');
  return end;
}

class BatchFilesTest : public ::testing::Test {
 protected:
  BatchFilesTest() { fs::create_directories(directory_); }
  ~BatchFilesTest() override { fs::remove_all(directory_); }

  std::string Write(const std::string& name, const std::string& bytes) {
    const std::string path = (directory_ / name).string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  absl::StatusOr<std::vector<BatchFile>> ReadTar(const std::string& bytes) {
    return ReadBatch({Write("batch.tar", bytes)}, std::nullopt);
  }
  void ExpectRefused(const std::string& tar, const std::string& text) {
    const absl::Status status = ReadTar(tar).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(status.message(), HasSubstr(text));
    EXPECT_THAT(status.message(), Not(HasSubstr("/fd/")));
  }

  const fs::path directory_ = fs::path(::testing::TempDir()) /
                              (std::string("batch_files_") +
                               ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(BatchFilesTest, ADirectoryIsItsMatricesByName) {
  Write("b.mtx", kSparse);
  Write("a.txt", "1 2 3\n");
  Write("notes.md", "no matrix");
  fs::create_directory(directory_ / "c.mtx");
  const auto files = ReadBatch({directory_.string()}, std::nullopt);
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(), 2u);
  EXPECT_EQ((*files)[0].matrix.cols, 3);
  const Array& sparse = (*files)[1].matrix;
  EXPECT_EQ(sparse.dtype, Dtype::kFloat64);
  EXPECT_EQ(sparse.At(0, 0), 5.0);  // duplicates are summed
  EXPECT_EQ(sparse.At(0, 1), 1.0);
  EXPECT_EQ(sparse.At(1, 1), 0.0);
}

TEST_F(BatchFilesTest, AllMembersHaveTheTypeThatHoldsThem) {
  const std::vector<std::string> paths = {Write("a.mtx", kDense), Write("b.mtx", kComplex)};
  const auto files = ReadBatch(paths, std::nullopt);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ((*files)[0].matrix.dtype, Dtype::kComplex128);
  EXPECT_EQ((*files)[1].matrix.At(0, 0), std::complex<double>(1, -2));
  EXPECT_EQ(ReadBatch({paths[0]}, Dtype::kFloat32)->front().matrix.dtype, Dtype::kFloat32);
  EXPECT_EQ(ReadBatch(paths, Dtype::kFloat64).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(BatchFilesTest, ATarIsItsMatricesInItsOrder) {
  const std::string long_name = absl::StrCat(std::string(120, 'd'), "/long.mtx");
  const std::string path_line = absl::StrCat("path=", std::string(200, 'e'), "/longer.mtx");
  const std::string extended = absl::StrCat(path_line.size() + 5, " ", path_line, "\n");
  const auto files =
      ReadTar(Entry("z.mtx", kDense) + Entry("dir/", "", '5') + Entry("dir/read.me", "text") +
              Entry("././@LongLink", long_name, 'L') + Entry("cut", kSparse) +
              Entry("pax", extended, 'x') + Entry("cut", kDense) + End());
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(), 3u);
  EXPECT_THAT((*files)[0].name, HasSubstr("batch.tar:z.mtx"));
  EXPECT_THAT((*files)[1].name, HasSubstr("/long.mtx"));
  EXPECT_THAT((*files)[2].name, HasSubstr("/longer.mtx"));
  EXPECT_EQ((*files)[0].matrix.At(0, 1), 3.0);
}

TEST_F(BatchFilesTest, APathInATarIsNeverOpened) {
  const auto files = ReadTar(Entry("../../../etc/passwd.mtx", kDense) +
                             Entry("/etc/\x1b[2Jshadow.mtx", kDense) + End());
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->size(), 2u);
  EXPECT_EQ((*files)[0].matrix.At(1, 1), 4.0);
  ExpectRefused(Entry("\x1b[2J.mtx", "nonsense") + End(), "\\x1b[2J.mtx");
}

TEST_F(BatchFilesTest, SizesThatLieAreRefusedBeforeMemoryIsTaken) {
  const std::string large = Header("a.mtx", "77777777777") + Padded(kDense) + End();
  ExpectRefused(large, "truncated");
  std::string base256(12, '\xff');
  base256[0] = '\x80';
  ExpectRefused(Header("a.mtx", base256) + Padded(kDense) + End(), "damaged");
  base256 = std::string(12, '\0');
  base256[0] = '\x80';
  base256[4] = '\x7f';
  ExpectRefused(Header("a.mtx", base256) + Padded(kDense) + End(), "truncated");
  ExpectRefused(Header("a.mtx", "-0000000001") + Padded(kDense) + End(), "damaged");
  ExpectRefused(Header("a.mtx", "") + End(), "damaged");
  ExpectRefused(Header("long", Octal(size_t{1} << 20), 'L') + Padded(std::string(1 << 20, 'a')),
                "a name has 1048576 bytes");
  ExpectRefused(Entry("pax", "20 size=99999999999\n", 'x') + Entry("a.mtx", kDense) + End(),
                "too large");
}

TEST_F(BatchFilesTest, ATarThatIsCutOffIsRefused) {
  const std::string whole = Entry("a.mtx", kDense) + Entry("b.mtx", kSparse) + End();
  for (const size_t size : {size_t{512}, size_t{530}, size_t{1024}, size_t{1100}, size_t{2048}}) {
    ExpectRefused(whole.substr(0, size), "truncated");
  }
}

TEST_F(BatchFilesTest, ACompressedTarIsReadToo) {
  const std::string tar =
      Entry("read.me", "text") + Entry("a.mtx", kDense) + Entry("b.mtx.gz", Gzip(kSparse)) + End();
  const auto files = ReadTar(Gzip(tar));
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(), 2u);
  EXPECT_THAT((*files)[0].name, HasSubstr("batch.tar:a.mtx"));
  EXPECT_EQ((*files)[0].matrix.At(0, 1), 3.0);
  EXPECT_EQ((*files)[1].matrix.At(0, 0), 5.0);
}

// An input whose bytes arrive in pieces. To read more than has arrived is an error.
class ArrivingInput : public ByteInput {
 public:
  explicit ArrivingInput(std::string* arrived) : arrived_(arrived) {}
  absl::StatusOr<size_t> Read(absl::Span<std::byte> to) override {
    if (arrived_->empty()) return absl::InternalError("nothing more has arrived");
    const size_t size = std::min(to.size(), arrived_->size());
    std::memcpy(to.data(), arrived_->data(), size);
    arrived_->erase(0, size);
    return size;
  }

 private:
  std::string* const arrived_;
};

TEST_F(BatchFilesTest, AFileOfATarIsReadBeforeTheNextArrives) {
  for (const bool compressed : {false, true}) {
    const auto sent = [&](const std::string& bytes) { return compressed ? Gzip(bytes) : bytes; };
    std::string arrived;
    TarReader tar("a tar", std::make_unique<ArrivingInput>(&arrived));
    for (const char* name : {"a.mtx", "b.mtx"}) {
      arrived = sent(Entry(name, kDense));
      const auto member = tar.Next();
      ASSERT_TRUE(member.ok()) << member.status();
      EXPECT_EQ(member->value_or(""), name);
      std::string text;
      const absl::Status read = tar.Read([&](absl::string_view piece) {
        absl::StrAppend(&text, piece);
        return absl::OkStatus();
      });
      EXPECT_TRUE(read.ok()) << read;
      EXPECT_EQ(text, kDense);
    }
    EXPECT_EQ(tar.Next().status().code(), absl::StatusCode::kInternal);
  }
}

TEST_F(BatchFilesTest, ATarIsRecognizedByItsFirstBytes) {
  const std::string tar = Entry("a.mtx", kDense) + End();
  const auto begins = [](const std::string& bytes) {
    return IsTarThatBegins({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
  };
  for (const std::string& whole : {tar, Gzip(tar)}) {
    EXPECT_EQ(begins(whole), true);
    EXPECT_EQ(begins(whole.substr(0, 5)), std::nullopt);
  }
  EXPECT_EQ(begins(std::string(kDense) + std::string(512, ' ')), false);
  EXPECT_EQ(begins(Gzip(std::string(512, 'a'))), false);
  EXPECT_EQ(begins("\x1f\x8b no gzip"), false);
}

TEST_F(BatchFilesTest, ACompressedTarThatIsCutOffOrDamagedIsRefused) {
  std::string noise;
  for (uint32_t i = 0, x = 1; i < 4000; ++i) absl::StrAppend(&noise, x = x * 1664525 + 1, " ");
  const std::string whole = Gzip(Entry("read.me", noise) + Entry("a.mtx", kDense) + End());
  ExpectRefused(whole.substr(0, whole.size() / 2), "truncated");
  std::string damaged = whole;
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 0x55);
  ExpectRefused(damaged, "damaged");
}

TEST_F(BatchFilesTest, ACompressedTarThatUnpacksToTooMuchIsRefused) {
  for (const char* name : {"a.mtx", "read.me"}) {
    const std::string bomb = Gzip(Entry(name, std::string(size_t{64} << 20, ' ')));
    const absl::Status status = ReadTar(bomb).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_THAT(status.message(), HasSubstr("Unpack it and give the directory"));
  }
}

TEST_F(BatchFilesTest, WhatIsNoFileIsRefused) {
  for (const char type : {'1', '2', '3', '6', 'S'}) {
    ExpectRefused(Entry("a.mtx", "", type) + End(), "is not a regular file");
  }
  std::string damaged = Entry("a.mtx", kDense) + End();
  damaged[0] = 'b';
  ExpectRefused(damaged, "damaged");
  ExpectRefused(Entry("read.me", kDense) + End(), "has no matrix");
  ExpectRefused(Entry("a.mtx", "no matrix") + End(), "batch.tar:a.mtx");
}

TEST_F(BatchFilesTest, ALineThatClaimsAHugeMatrixIsRefused) {
  const std::string huge =
      Write("a.mtx", "%%MatrixMarket matrix coordinate real general\n9999999 9999999 1\n1 1 1\n");
  const absl::Status status = ReadBatch({huge}, std::nullopt).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  const std::string overflow = Write("b.mtx",
                                     "%%MatrixMarket matrix coordinate real general\n"
                                     "9223372036854775807 9223372036854775807 1\n1 1 1\n");
  EXPECT_EQ(ReadBatch({overflow}, std::nullopt).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(BatchFilesTest, WhatIsNotThereIsAFileError) {
  fs::create_directory(directory_ / "empty");
  EXPECT_TRUE(IsFileError(ReadBatch({(directory_ / "none.mtx").string()}, std::nullopt).status()));
  EXPECT_THAT(ReadBatch({(directory_ / "empty").string()}, std::nullopt).status().message(),
              HasSubstr("has no matrix"));
}

}  // namespace
}  // namespace crout::cli::cli_batch_files_test
