// SPDX-License-Identifier: Apache-2.0

#include "client/cli/formats/sparse_npz.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/formats/npy.h"
#include "client/cli/report/text.h"

namespace crout::cli {
namespace {

constexpr int64_t kMaxRows = std::numeric_limits<int32_t>::max();

absl::Status Malformed(absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("invalid archive of scipy.sparse.save_npz: ", why));
}

absl::Status MemberError(const std::string& name, const absl::Status& status) {
  return {status.code(), absl::StrCat(name, ".npy: ", status.message())};
}

// Result of `read` for the member.
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

// Computes the line of every entry of a compressed matrix with `lines` lines and `capacity` values.
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

}  // namespace

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

}  // namespace crout::cli
