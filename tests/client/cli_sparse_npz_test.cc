// SPDX-License-Identifier: Apache-2.0

// Tests archives that scipy.sparse.save_npz writes, and hostile archives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <complex>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/formats/array.h"
#include "client/cli/formats/npy_header.h"
#include "client/cli/formats/npz.h"

namespace crout::cli::cli_sparse_npz_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Npy(const std::string& descr, const std::string& shape, const std::string& data) {
  std::string header =
      absl::StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': ", shape, ", }\n");
  const char length[] = {static_cast<char>(header.size()), 0};
  return absl::StrCat(kNpyMagic, absl::string_view("\1\0", 2), absl::string_view(length, 2), header,
                      data);
}

template <class T>
std::string Vector(const std::string& descr, const std::vector<T>& values) {
  return Npy(descr, absl::StrCat("(", values.size(), ",)"),
             {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
}

std::string Int32(const std::vector<int32_t>& values) { return Vector("<i4", values); }
std::string Int64(const std::vector<int64_t>& values) { return Vector("<i8", values); }
std::string Float64(const std::vector<double>& values) { return Vector("<f8", values); }
std::string Word(const std::string& word) { return Npy("|S3", "()", word); }

using Members = std::map<std::string, std::string>;

class SparseNpzTest : public ::testing::Test {
 protected:
  ~SparseNpzTest() override { unlink(path_.c_str()); }

  // Returns the members of an archive of [[1, 0, 2], [0, 3, 0]], stored by rows.
  static Members Csr() {
    return {{"format", Word("csr")},
            {"shape", Int64({2, 3})},
            {"data", Float64({1, 2, 3})},
            {"indices", Int32({0, 2, 1})},
            {"indptr", Int32({0, 2, 3})}};
  }
  static Members Coo() {
    return {{"format", Word("coo")},
            {"shape", Int64({2, 3})},
            {"data", Float64({3, 1, 2})},
            {"row", Int32({1, 0, 0})},
            {"col", Int32({1, 0, 2})}};
  }
  absl::StatusOr<SparseArray> Read(const Members& members) {
    auto writer = NpzWriter::Open(path_);
    EXPECT_TRUE(writer.ok());
    for (const auto& [name, bytes] : members) {
      EXPECT_TRUE((*writer)->BeginArray(name).ok());
      EXPECT_TRUE((*writer)->Write(bytes).ok());
    }
    EXPECT_TRUE((*writer)->Close().ok());
    auto read = ReadNpz(path_, "");
    if (!read.ok()) return read.status();
    return std::get<SparseArray>(*std::move(read));
  }
  void ExpectRefused(Members members, const std::string& name, const std::string& bytes,
                     const std::string& why) {
    members[name] = bytes;
    const auto matrix = Read(members);
    EXPECT_EQ(matrix.status().code(), absl::StatusCode::kInvalidArgument) << name << why;
    EXPECT_THAT(std::string(matrix.status().message()), HasSubstr(why));
  }

  const std::string path_ = ::testing::TempDir() + "/crout_sparse_npz." + std::to_string(getpid());
};

TEST_F(SparseNpzTest, EveryFormatGivesItsEntriesInTheirOrder) {
  auto matrix = Read(Csr());
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_EQ(matrix->rows, 2);
  EXPECT_EQ(matrix->cols, 3);
  EXPECT_THAT(matrix->row, ElementsAre(0, 0, 1));
  EXPECT_THAT(matrix->col, ElementsAre(0, 2, 1));
  EXPECT_THAT(ElementsOf<double>(matrix->values), ElementsAre(1, 2, 3));
  Members csc = Csr();
  csc["format"] = Word("csc");
  csc["shape"] = Int64({3, 2});
  matrix = Read(csc);
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_THAT(matrix->row, ElementsAre(0, 2, 1));
  EXPECT_THAT(matrix->col, ElementsAre(0, 0, 1));
  matrix = Read(Coo());
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_THAT(matrix->row, ElementsAre(1, 0, 0));
  EXPECT_THAT(matrix->col, ElementsAre(1, 0, 2));
}

TEST_F(SparseNpzTest, TypesAndSizesOfAnyKind) {
  Members members = Csr();
  members["format"] = Npy("<U3", "()", std::string("c\0\0\0s\0\0\0r\0\0\0", 12));
  members["_is_array"] = Npy("|b1", "()", "\1");
  members["data"] = Vector<std::complex<float>>("<c8", {{1, -1}, {2, 0}, {3, 0}});
  members["indices"] = Int64({0, 2, 1});
  auto matrix = Read(members);
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_EQ(matrix->values.dtype, Dtype::kComplex64);
  EXPECT_EQ(matrix->values.At(0, 0), std::complex<double>(1, -1));
  members["data"] = Npy("|b1", "(3,)", "\1\1\1");
  EXPECT_EQ(Read(members)->values.dtype, Dtype::kFloat64);
  // The arrays have unused elements after the last entry.
  members["data"] = Float64({1, 2, 3, 77, 78});
  members["indices"] = Int32({0, 2, 1, -9, 99});
  matrix = Read(members);
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_THAT(ElementsOf<double>(matrix->values), ElementsAre(1, 2, 3));
  EXPECT_THAT(matrix->col, ElementsAre(0, 2, 1));
  members["shape"] = Int64({0, 0});
  members["indptr"] = Int32({0});
  EXPECT_TRUE(Read(members)->row.empty());
}

TEST_F(SparseNpzTest, WhatIsNoMatrixIsRefused) {
  const int64_t huge = int64_t{1} << 40;
  ExpectRefused(Csr(), "format", Word("bsr"), "its format is 'bsr'. Save the matrix as A.tocsr()");
  ExpectRefused(Csr(), "format", Npy("|S99", "()", std::string(99, 'c')), "type '|S99'");
  ExpectRefused(Csr(), "format", Int32({1}), "format.npy: invalid .npy file: it is not a string");
  ExpectRefused(Csr(), "format", Npy("|S3", "()", "\xff\xff\xff"), "not ASCII");
  ExpectRefused(Csr(), "shape", Int64({3}), "A.reshape(rows, columns)");
  ExpectRefused(Csr(), "shape", Int64({-1, 3}), "its shape is -1 x 3");
  ExpectRefused(Csr(), "shape", Int64({2, huge}), "0 to 2147483647 rows");
  ExpectRefused(Csr(), "shape", Float64({2, 3}), "integers");
  ExpectRefused(Csr(), "shape", Int64({3, 3}), "indptr has 3 offsets");
  ExpectRefused(Csr(), "indptr", Int32({0, 2, 4}), "to at most 3, the number");
  ExpectRefused(Csr(), "indptr", Int32({1, 2, 3}), "do not increase from 0");
  ExpectRefused(Csr(), "indptr", Int32({0, 3, 2}), "do not increase from 0");
  ExpectRefused(Csr(), "indptr", Int64({0, -huge, 3}), "do not increase from 0");
  ExpectRefused(Csr(), "indices", Int32({0, 3, 1}), "index 3 of entry 1 in indices");
  ExpectRefused(Csr(), "indices", Int32({0, -1, 1}), "index -1 of entry 1");
  ExpectRefused(Csr(), "indices", Int32({0, 2}), "indices has 2 indices for 3 entries");
  ExpectRefused(Csr(), "indices", Float64({0, 2, 1}), "integers");
  ExpectRefused(Csr(), "indices", Vector<uint64_t>("<u8", {0, ~uint64_t{0}, 1}), "above 2^63 - 1");
  ExpectRefused(Csr(), "data", Npy("<f8", "(1, 3)", std::string(24, '\0')), "two dimensions");
  ExpectRefused(Csr(), "data", Word("abc"), "0 dimensions");
  ExpectRefused(Csr(), "data", Npy("<f16", "(3,)", std::string(48, '\0')), "type '<f16'");
  ExpectRefused(Csr(), "data", Npy("<f8", "(3,)", std::string(23, '\0')), "ends after 23 of 24");
  ExpectRefused(Csr(), "data", Npy("<f8", "(9223372036854775807,)", ""), "do not fit into memory");
  ExpectRefused(Coo(), "row", Int32({1, 2, 0}), "index 2 of entry 1 in row is not in [0, 2)");
  ExpectRefused(Coo(), "col", Int32({1, 0}), "col has 2 indices");
  for (const char* missing : {"shape", "data", "indices", "indptr"}) {
    Members members = Csr();
    members.erase(missing);
    const auto matrix = Read(members);
    EXPECT_EQ(matrix.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(matrix.status().message()), HasSubstr(absl::StrCat("no ", missing)));
  }
}

// The expected number is the value of SeriesResult.entry_digest, computed in Python by its
// definition. tests/kernels/io/value_map_test.cc contains the same number.
TEST_F(SparseNpzTest, DigestsItsEntriesInTheirOrder) {
  Members members = Coo();
  members["shape"] = Int64({3, 3});
  members["data"] = Float64({1, 3, 1, 2});
  members["row"] = Int32({1, 0, 0, 2});
  members["col"] = Int32({0, 0, 0, 2});
  EXPECT_EQ(Read(members)->EntryDigest(), "32b0c433a9be6bf4");
}

}  // namespace
}  // namespace crout::cli::cli_sparse_npz_test
