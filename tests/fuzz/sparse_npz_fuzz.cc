// SPDX-License-Identifier: Apache-2.0

// Fuzzes croutctl's reader of sparse .npz archives. An accepted archive must have as many values as
// indices, and all indices must be within the shape.
//
// The input is a sequence of arrays. Each is a byte that selects the name (kNames), two bytes with
// the length, low byte first, and an .npy file. An input that begins like a zip file is the
// archive.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "client/cli/formats/npz.h"
#include "client/cli/formats/temporary_file.h"

namespace crout::cli {
namespace {

constexpr const char* kNames[] = {"format", "shape", "data", "indices", "indptr", "row", "col"};

void Require(bool condition) {
  if (!condition) std::abort();
}

void WriteArchive(const std::string& path, std::string_view rest) {
  auto writer = NpzWriter::Open(path);
  Require(writer.ok());
  while (rest.size() >= 3) {
    const auto byte = [&](size_t at) { return static_cast<unsigned char>(rest[at]); };
    const std::string name = kNames[byte(0) % std::size(kNames)];
    const size_t length = byte(1) + 256U * byte(2);
    rest.remove_prefix(3);
    const std::string_view bytes = rest.substr(0, length);
    rest.remove_prefix(bytes.size());
    Require((*writer)->BeginArray(name).ok());
    Require((*writer)->Write({bytes.data(), bytes.size()}).ok());
  }
  Require((*writer)->Close().ok());
}

bool AreWithin(const std::vector<int32_t>& indices, int64_t size) {
  return std::ranges::all_of(indices, [&](int32_t index) { return index >= 0 && index < size; });
}

void Check(const SparseArray& matrix) {
  Require(matrix.row.size() == matrix.col.size());
  Require(matrix.values.rows == std::ssize(matrix.row) && matrix.values.cols == 1);
  Require(matrix.values.bytes.size() == matrix.row.size() * SizeOf(ElementOf(matrix.values.dtype)));
  Require(AreWithin(matrix.row, matrix.rows) && AreWithin(matrix.col, matrix.cols));
  Require(matrix.EntryDigest().size() == 16);
}

void Fuzz(std::string_view input) {
  auto file = NewTemporaryFile();
  Require(file.ok());
  if (input.substr(0, 2) == "PK") {
    Require(Write(*file, {input.data(), input.size()}).ok() && std::fflush(file->get()) == 0);
  } else {
    WriteArchive(PathOf(*file), input);
  }
  const auto read = ReadNpz(PathOf(*file), "");
  if (!read.ok()) return;
  if (const auto* sparse = std::get_if<SparseArray>(&*read)) Check(*sparse);
}

}  // namespace
}  // namespace crout::cli

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  crout::cli::Fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
