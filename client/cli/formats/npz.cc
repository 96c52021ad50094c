// SPDX-License-Identifier: Apache-2.0

#include "client/cli/formats/npz.h"

#include <minizip/unzip.h>
#include <minizip/zip.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/cli/exit_codes.h"
#include "client/cli/formats/byte_input.h"
#include "client/cli/formats/npy.h"
#include "client/cli/report/text.h"

namespace crout::cli {
namespace {

using Archive = std::unique_ptr<void, int (*)(unzFile)>;

absl::Status Damaged() {
  return absl::InvalidArgumentError(
      "the file is not a zip archive or is damaged. Write it with numpy.savez");
}

// Input of the member that is open in an archive.
class MemberInput : public ByteInput {
 public:
  explicit MemberInput(unzFile archive) : archive_(archive) {}

  absl::StatusOr<size_t> Read(absl::Span<std::byte> to) override {
    const size_t limit = std::min<size_t>(to.size(), std::numeric_limits<int>::max());
    const int got = unzReadCurrentFile(archive_, to.data(), static_cast<unsigned>(limit));
    if (got < 0) return Damaged();
    // At the end of the member its checksum is verified.
    if (got == 0 && unzCloseCurrentFile(archive_) != UNZ_OK) return Damaged();
    return static_cast<size_t>(got);
  }

 private:
  const unzFile archive_;
};

// Returns the names of the members that end in .npy, without that ending.
absl::StatusOr<std::vector<std::string>> ArraysOf(unzFile archive) {
  std::vector<std::string> names;
  int next = unzGoToFirstFile(archive);
  for (; next == UNZ_OK; next = unzGoToNextFile(archive)) {
    char name[256] = "";
    unz_file_info64 info;
    if (unzGetCurrentFileInfo64(archive, &info, name, sizeof name - 1, nullptr, 0, nullptr, 0) !=
        UNZ_OK) {
      return Damaged();
    }
    if (absl::EndsWith(name, ".npy")) names.emplace_back(absl::StripSuffix(name, ".npy"));
  }
  if (next != UNZ_END_OF_LIST_OF_FILE) return Damaged();
  return names;
}

// Positions the archive at the member `name` of `names`.
absl::Status Choose(unzFile archive, const std::vector<std::string>& names,
                    const std::string& name) {
  if (name.empty() || !absl::c_linear_search(names, name)) {
    const std::string all = Printable(absl::StrJoin(names, ", "));
    return absl::InvalidArgumentError(
        absl::StrCat("the archive has ", names.empty() ? "no arrays" : all,
                     name.empty() ? "" : absl::StrCat(", but no ", Printable(name)),
                     ". Select one with F.npz:NAME"));
  }
  if (unzLocateFile(archive, absl::StrCat(name, ".npy").c_str(), 1) != UNZ_OK ||
      unzOpenCurrentFile(archive) != UNZ_OK) {
    return Damaged();
  }
  return absl::OkStatus();
}

// Passes the .npy file of the archive's array `name` to `read`, once. INVALID_ARGUMENT if there is
// none; otherwise the status of `read`.
using NpzMember = absl::FunctionRef<absl::Status(const std::string& name,
                                                 absl::FunctionRef<absl::Status(ByteInput*)> read)>;

constexpr int64_t kMaxRows = std::numeric_limits<int32_t>::max();

absl::Status Malformed(absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("invalid archive of scipy.sparse.save_npz: ", why));
}

absl::Status MemberError(const std::string& name, const absl::Status& status) {
  return {status.code(), absl::StrCat(name, ".npy: ", status.message())};
}

// Returns the result of `read` for the member.
template <class T>
absl::StatusOr<T> Read(NpzMember member, const std::string& name,
                       absl::StatusOr<T> (*read)(ByteInput*)) {
  absl::StatusOr<T> result;
  absl::Status status = member(name, [&](ByteInput* input) {
    result = read(input);
    return result.ok() ? absl::OkStatus() : MemberError(name, result.status());
  });
  if (!status.ok()) return status;
  return result;
}

absl::Status ReadShape(NpzMember member, SparseArray* matrix) {
  const auto shape = Read(member, "shape", ReadNpyIntegers);
  if (!shape.ok()) return shape.status();
  if (shape->size() != 2) {
    return Malformed(absl::StrCat("its shape has ", shape->size(),
                                  " dimensions; a matrix has two. Save A.reshape(rows, columns)"));
  }
  matrix->rows = (*shape)[0];
  matrix->cols = (*shape)[1];
  if (std::min(matrix->rows, matrix->cols) < 0 || std::max(matrix->rows, matrix->cols) > kMaxRows) {
    return Malformed(absl::StrCat("its shape is ", matrix->rows, " x ", matrix->cols,
                                  "; a matrix has 0 to ", kMaxRows, " rows and columns"));
  }
  return absl::OkStatus();
}

// Reads `count` indices from 0 to `size` - 1.
absl::Status ReadIndices(NpzMember member, const std::string& name, int64_t size, int64_t count,
                         std::vector<int32_t>* indices) {
  const auto read = Read(member, name, ReadNpyIntegers);
  if (!read.ok()) return read.status();
  if (std::ssize(*read) < count) {
    return Malformed(absl::StrCat(name, " has ", read->size(), " indices for ", count, " entries"));
  }
  indices->reserve(static_cast<size_t>(count));
  for (int64_t k = 0; k < count; ++k) {
    const int64_t index = (*read)[k];
    if (index < 0 || index >= size) {
      return Malformed(absl::StrCat("index ", index, " of entry ", k, " in ", name,
                                    " is not in [0, ", size, ")"));
    }
    indices->push_back(static_cast<int32_t>(index));
  }
  return absl::OkStatus();
}

// Computes the row or column (line) of every entry of a compressed matrix with `lines` lines and
// `capacity` values.
absl::Status ReadLines(NpzMember member, int64_t lines, int64_t capacity,
                       std::vector<int32_t>* line) {
  const auto starts = Read(member, "indptr", ReadNpyIntegers);
  if (!starts.ok()) return starts.status();
  if (std::ssize(*starts) != lines + 1) {
    return Malformed(absl::StrCat("indptr has ", starts->size(), " offsets; ", lines,
                                  " compressed rows or columns need ", lines + 1));
  }
  if (starts->front() != 0 || starts->back() > capacity || !std::ranges::is_sorted(*starts)) {
    return Malformed(absl::StrCat("the offsets of indptr do not increase from 0 to at most ",
                                  capacity, ", the number of values"));
  }
  line->reserve(static_cast<size_t>(starts->back()));
  for (int64_t i = 0; i < lines; ++i) {
    line->insert(line->end(), static_cast<size_t>((*starts)[i + 1] - (*starts)[i]),
                 static_cast<int32_t>(i));
  }
  return absl::OkStatus();
}

absl::Status ReadCompressed(NpzMember member, bool by_rows, SparseArray* matrix) {
  auto& lines = by_rows ? matrix->row : matrix->col;
  auto& indices = by_rows ? matrix->col : matrix->row;
  const int64_t across = by_rows ? matrix->cols : matrix->rows;
  absl::Status status =
      ReadLines(member, by_rows ? matrix->rows : matrix->cols, matrix->values.rows, &lines);
  if (!status.ok()) return status;
  const int64_t count = std::ssize(lines);
  matrix->values.rows = count;
  matrix->values.bytes.resize(static_cast<size_t>(count) * SizeOf(ElementOf(matrix->values.dtype)));
  return ReadIndices(member, "indices", across, count, &indices);
}

absl::Status ReadPlaces(NpzMember member, SparseArray* matrix) {
  const int64_t count = matrix->values.rows;
  absl::Status status = ReadIndices(member, "row", matrix->rows, count, &matrix->row);
  if (!status.ok()) return status;
  return ReadIndices(member, "col", matrix->cols, count, &matrix->col);
}

// Reads a matrix in SciPy's formats csr, csc and coo. Spare capacity after the last entry of a
// compressed matrix is ignored. INVALID_ARGUMENT for other formats, for arrays whose sizes
// disagree, for an index outside the shape, and as from ReadNpy.
absl::StatusOr<SparseArray> ReadSparse(NpzMember member) {
  const auto format = Read(member, "format", ReadNpyWord);
  if (!format.ok()) return format.status();
  if (*format != "csr" && *format != "csc" && *format != "coo") {
    return Malformed(absl::StrCat("its format is '", Printable(*format),
                                  "'. Save the matrix as A.tocsr(), A.tocsc() or A.tocoo()"));
  }
  SparseArray matrix;
  if (absl::Status status = ReadShape(member, &matrix); !status.ok()) return status;
  auto values = Read(member, "data", ReadNpy);
  if (!values.ok()) return values.status();
  if (values->cols != 1) return Malformed("its data has two dimensions");
  matrix.values = *std::move(values);
  absl::Status status = *format == "coo" ? ReadPlaces(member, &matrix)
                                         : ReadCompressed(member, *format == "csr", &matrix);
  if (!status.ok()) return status;
  return matrix;
}

absl::StatusOr<SparseArray> ReadSparseOf(unzFile archive, const std::vector<std::string>& names) {
  return ReadSparse([&](const std::string& name,
                        absl::FunctionRef<absl::Status(ByteInput*)> read) -> absl::Status {
    if (absl::Status status = Choose(archive, names, name); !status.ok()) return status;
    MemberInput member(archive);
    return read(&member);
  });
}

absl::Status CopyToStandardOutput(const TemporaryFile& file) {
  absl::Status status = ReadAll(file, [](absl::string_view piece) {
    std::cout.write(piece.data(), static_cast<std::streamsize>(piece.size()));
    return absl::OkStatus();
  });
  if (status.ok() && !std::cout.flush()) return FileError("cannot write standard output");
  return status;
}

}  // namespace

absl::StatusOr<std::variant<Array, SparseArray>> ReadNpz(const std::string& path,
                                                         const std::string& name,
                                                         absl::Time deadline) {
  TemporaryFile copy = NoTemporaryFile();
  std::string file = path;
  if (path == "-") {
    auto copied = CopyOfStandardInput(deadline);
    if (!copied.ok()) return copied.status();
    copy = *std::move(copied);
    file = PathOf(copy);
  }
  const Archive archive(unzOpen64(file.c_str()), unzClose);
  if (archive == nullptr) return Damaged();
  const auto names = ArraysOf(archive.get());
  if (!names.ok()) return names.status();
  if (name.empty() && absl::c_linear_search(*names, "format")) {
    return ReadSparseOf(archive.get(), *names);
  }
  const std::string& wanted = name.empty() && names->size() == 1 ? names->front() : name;
  if (absl::Status status = Choose(archive.get(), *names, wanted); !status.ok()) return status;
  MemberInput member(archive.get());
  return ReadNpy(&member);
}

absl::StatusOr<std::unique_ptr<NpzWriter>> NpzWriter::Open(const std::string& path) {
  std::unique_ptr<NpzWriter> writer(new NpzWriter);
  writer->path_ = path;
  std::string file = path;
  if (path == "-") {
    auto unnamed = NewTemporaryFile();
    if (!unnamed.ok()) return unnamed.status();
    writer->unnamed_ = *std::move(unnamed);
    file = PathOf(writer->unnamed_);
  }
  errno = 0;
  writer->file_ = zipOpen64(file.c_str(), APPEND_STATUS_CREATE);
  if (writer->file_ == nullptr) return FileErrnoError(errno, absl::StrCat("cannot write ", path));
  return writer;
}

NpzWriter::~NpzWriter() { End().IgnoreError(); }

absl::Status NpzWriter::Error() const {
  return FileError(absl::StrCat("cannot write all of ", path_));
}

absl::Status NpzWriter::BeginArray(const std::string& name) {
  if (in_array_ && zipCloseFileInZip(file_) != ZIP_OK) return Error();
  in_array_ = true;
  zip_fileinfo info = {};
  info.tmz_date = {0, 0, 0, 1, 0, 1980};  // fixed, so that equal matrices make equal files
  const bool ok = zipOpenNewFileInZip64(file_, absl::StrCat(name, ".npy").c_str(), &info, nullptr,
                                        0, nullptr, 0, nullptr, Z_DEFLATED, Z_BEST_SPEED,
                                        /*zip64=*/1) == ZIP_OK;
  return ok ? absl::OkStatus() : Error();
}

absl::Status NpzWriter::Write(absl::string_view bytes) {
  while (!bytes.empty()) {
    const absl::string_view piece = bytes.substr(0, size_t{1} << 20);
    if (zipWriteInFileInZip(file_, piece.data(), static_cast<unsigned>(piece.size())) != ZIP_OK) {
      return Error();
    }
    bytes.remove_prefix(piece.size());
  }
  return absl::OkStatus();
}

absl::Status NpzWriter::Close() {
  if (absl::Status status = End(); !status.ok() || unnamed_ == nullptr) return status;
  return CopyToStandardOutput(std::exchange(unnamed_, NoTemporaryFile()));
}

absl::Status NpzWriter::End() {
  if (file_ == nullptr) return absl::OkStatus();
  const bool ended = !in_array_ || zipCloseFileInZip(file_) == ZIP_OK;
  const bool closed = zipClose(std::exchange(file_, nullptr), nullptr) == ZIP_OK;
  return ended && closed ? absl::OkStatus() : Error();
}

}  // namespace crout::cli
