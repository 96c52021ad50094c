#include "client/c/matrices.h"

#include <cstddef>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace crout::c {
namespace {

using client::MatrixSource;
using client::StridedSink;

v1::Layout LayoutOf(const crout_matrix& matrix) {
  return matrix.layout == CROUT_ROW_MAJOR ? v1::LAYOUT_ROW_MAJOR : v1::LAYOUT_COLUMN_MAJOR;
}

// Bytes from the first element of a matrix like `m`, with leading dimension `ld`, to behind its
// last.
__int128 Extent(const crout_matrix& m, int64_t ld) {
  if (m.rows <= 0 || m.cols <= 0) return 0;
  const bool by_rows = m.layout == CROUT_ROW_MAJOR;
  const int64_t count = by_rows ? m.rows : m.cols;
  const int64_t length = by_rows ? m.cols : m.rows;
  const auto element = WithType<size_t>(m.dtype, m.data, [](const auto* p) { return sizeof *p; });
  return (static_cast<__int128>(count - 1) * ld + length) * static_cast<__int128>(element);
}

// Whether X would be written to where B is read.
bool Overlap(const crout_matrix& b, const void* x, int64_t ldx) {
  const __int128 from = reinterpret_cast<uintptr_t>(b.data);
  const __int128 to = reinterpret_cast<uintptr_t>(x);
  return from < to + Extent(b, ldx) && to < from + Extent(b, b.ld);
}

}  // namespace

absl::Status CheckType(int32_t dtype) {
  if (dtype >= CROUT_FLOAT32 && dtype <= CROUT_COMPLEX128) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("no dtype has the number ", dtype));
}

absl::Status CheckMatrix(const crout_matrix* matrix) {
  if (matrix == nullptr) return absl::InvalidArgumentError("the matrix is null");
  if (absl::Status status = CheckType(matrix->dtype); !status.ok()) return status;
  if (matrix->layout != CROUT_COLUMN_MAJOR && matrix->layout != CROUT_ROW_MAJOR) {
    return absl::InvalidArgumentError(absl::StrCat("no layout has the number ", matrix->layout));
  }
  return absl::OkStatus();
}

MatrixSource SourceOf(const crout_matrix& m) {
  return WithType<MatrixSource>(m.dtype, m.data, [&](const auto* data) {
    return MatrixSource::Strided(data, m.rows, m.cols, m.ld, LayoutOf(m));
  });
}

StridedSink SinkLike(const crout_matrix& m, void* x, int64_t ldx) {
  return WithType<StridedSink>(
      m.dtype, x, [&](auto* data) { return StridedSink(data, m.rows, m.cols, ldx, LayoutOf(m)); });
}

absl::Status CheckPlace(const crout_matrix& b, const void* x, int64_t ldx) {
  if (x == nullptr && b.rows > 0 && b.cols > 0) return absl::InvalidArgumentError("x is null");
  if (Overlap(b, x, ldx)) return absl::InvalidArgumentError("x overlaps b");
  return absl::OkStatus();
}

absl::StatusOr<v1::Algorithm> AlgorithmOf(const char* name) {
  v1::Algorithm algorithm;
  const std::string word = absl::StrCat("ALGORITHM_", absl::AsciiStrToUpper(name));
  if (v1::Algorithm_Parse(word, &algorithm)) return algorithm;
  return absl::InvalidArgumentError(absl::StrCat("no algorithm is called ", name));
}

v1::Operation OperationOf(int32_t transpose) {
  switch (transpose) {
    case CROUT_NO_TRANSPOSE:
      return v1::OPERATION_NONE;
    case CROUT_TRANSPOSE:
      return v1::OPERATION_TRANSPOSE;
    case CROUT_CONJUGATE_TRANSPOSE:
      return v1::OPERATION_CONJUGATE_TRANSPOSE;
    default:
      return v1::OPERATION_UNSPECIFIED;
  }
}

}  // namespace crout::c
