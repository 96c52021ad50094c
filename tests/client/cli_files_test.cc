// SPDX-License-Identifier: Apache-2.0

// Tests the Matrix Market files that croutctl writes and inspects.
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <complex>
#include <cstdio>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "client/cli/exit_codes.h"
#include "client/cli/formats/matrix_market.h"
#include "client/cli/output/array_writer.h"

namespace crout::cli::cli_files_test {
namespace {

class CliFilesTest : public ::testing::Test {
 protected:
  ~CliFilesTest() override { unlink(path_.c_str()); }

  std::string Contents() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }

  const std::string path_ =
      ::testing::TempDir() + "/crout_cli_files_test." + std::to_string(getpid());
};

template <class T>
absl::Span<const std::byte> Bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(T)};
}

TEST_F(CliFilesTest, SinkWritesShortestRoundTripNumbersWhateverThePieces) {
  const std::vector<double> x = {0.1, -2, 1e300, 1.0 / 3, std::numeric_limits<double>::denorm_min(),
                                 -0.0};
  DenseSpec spec;
  spec.dtype = Dtype::kFloat64;
  spec.rows = 3;
  spec.cols = 2;
  for (const size_t piece : {1, 3, 8, 11, 100}) {
    ArrayFileSink sink(path_);
    ASSERT_TRUE(sink.Begin(spec).ok());
    for (auto rest = Bytes(x); !rest.empty();) {
      const auto head = rest.subspan(0, piece);
      ASSERT_TRUE(sink.Append(head).ok());
      rest.remove_prefix(head.size());
    }
    ASSERT_TRUE(sink.Close().ok());
    EXPECT_EQ(Contents(),
              "%%MatrixMarket matrix array real general\n3 2\n0.1\n-2\n1e+300\n"
              "0.3333333333333333\n5e-324\n-0\n")
        << piece;
  }
}

TEST_F(CliFilesTest, Float32NumbersAreShort) {
  const std::vector<float> x = {0.1f};
  DenseSpec spec;
  spec.dtype = Dtype::kFloat32;
  spec.rows = 1;
  spec.cols = 1;
  ArrayFileSink sink(path_);
  ASSERT_TRUE(sink.Begin(spec).ok());
  ASSERT_TRUE(sink.Append(Bytes(x)).ok());
  ASSERT_TRUE(sink.Close().ok());
  EXPECT_EQ(Contents(), "%%MatrixMarket matrix array real general\n1 1\n0.1\n");
}

template <class T>
std::string WrittenComplex(const std::string& path, Dtype dtype, size_t piece,
                           const std::vector<std::complex<T>>& x) {
  DenseSpec spec;
  spec.dtype = dtype;
  spec.rows = static_cast<int64_t>(x.size());
  spec.cols = 1;
  ArrayFileSink sink(path);
  EXPECT_TRUE(sink.Begin(spec).ok());
  for (auto rest = Bytes(x); !rest.empty();) {
    const auto head = rest.subspan(0, piece);
    EXPECT_TRUE(sink.Append(head).ok());
    rest.remove_prefix(head.size());
  }
  EXPECT_TRUE(sink.Close().ok());
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST_F(CliFilesTest, ComplexNumbersAreTwo) {
  for (const size_t piece : {1, 3, 8, 15, 17, 100}) {
    EXPECT_EQ(WrittenComplex<double>(path_, Dtype::kComplex128, piece,
                                     {{0.1, -2}, {-1e300, 1.0 / 3}, {-0.0, 5e-324}}),
              "%%MatrixMarket matrix array complex general\n3 1\n0.1 -2\n"
              "-1e+300 0.3333333333333333\n-0 5e-324\n");
    EXPECT_EQ(WrittenComplex<float>(path_, Dtype::kComplex64, piece, {{0.1f, -2}, {0, 0.5f}}),
              "%%MatrixMarket matrix array complex general\n2 1\n0.1 -2\n0 0.5\n");
  }
  // The longest number fits in the buffer of the writer.
  const double longest = -std::numeric_limits<double>::min() / 3;
  EXPECT_EQ(WrittenComplex<double>(path_, Dtype::kComplex128, 16, {{longest, longest}}).size(),
            std::string("%%MatrixMarket matrix array complex general\n1 1\n").size() +
                2 * std::string("-7.41691286197675e-309 ").size());
}

TEST_F(CliFilesTest, FilesThatCannotBeWrittenAreReported) {
  DenseSpec spec;
  const absl::Status missing = ArrayFileSink("/no/such/directory/x").Begin(spec);
  EXPECT_TRUE(IsFileError(missing)) << missing;
  EXPECT_EQ(ExitCodeOf(missing), kFile);
  spec.rows = 100'000;
  spec.cols = 1;
  ArrayFileSink full("/dev/full");
  ASSERT_TRUE(full.Begin(spec).ok());
  ASSERT_TRUE(full.Append(Bytes(std::vector<double>(100'000, 0.5))).ok());
  EXPECT_TRUE(IsFileError(full.Close()));
}

TEST_F(CliFilesTest, RowsAreReadFromPlainAndGzipFiles) {
  const std::string text =
      "%%MatrixMarket matrix coordinate real general\r\n% c\r\n\r\n 42 43 7\r\n";
  std::ofstream(path_) << text;
  EXPECT_EQ(*MatrixMarketRows(path_), 42);
  const gzFile file = gzopen(path_.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  EXPECT_EQ(*MatrixMarketRows(path_), 42);
}

TEST_F(CliFilesTest, TheBannerDeterminesWhetherAFileIsComplex) {
  const std::string complex = "%%matrixmarket matrix\tArray COMPLEX general\r\n1 1\n1 1\n";
  std::ofstream(path_) << complex;
  EXPECT_TRUE(MatrixMarketIsComplex(path_));
  const gzFile file = gzopen(path_.c_str(), "wb");
  gzwrite(file, complex.data(), static_cast<unsigned>(complex.size()));
  gzclose(file);
  EXPECT_TRUE(MatrixMarketIsComplex(path_));
  for (const char* text : {"", "complex", "%%MatrixMarket matrix array real general\n%complex\n",
                           "%%MatrixMarket matrix complex"}) {
    std::ofstream(path_) << text;
    EXPECT_FALSE(MatrixMarketIsComplex(path_)) << text;
  }
  EXPECT_FALSE(MatrixMarketIsComplex("/no/such"));
  EXPECT_FALSE(MatrixMarketIsComplex("/dev/null"));
}

TEST_F(CliFilesTest, CommentsMayBeLongerThanABuffer) {
  for (const size_t length : {4093, 4094, 4095, 4096, 10'000}) {
    std::ofstream(path_) << "%%MatrixMarket matrix coordinate real general\n%"
                         << std::string(length, '7') << " 5 5\n42 43 7\n";
    EXPECT_EQ(*MatrixMarketRows(path_), 42) << length;
  }
}

TEST_F(CliFilesTest, FilesWithoutRowsAreRefused) {
  for (const char* text : {"", "%%MatrixMarket\n", "%%MatrixMarket\nx 3\n", "-3 3 1\n"}) {
    std::ofstream(path_) << text;
    EXPECT_EQ(MatrixMarketRows(path_).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_EQ(MatrixMarketRows("/no/such").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace crout::cli::cli_files_test
