// SPDX-License-Identifier: Apache-2.0

#include "client/c/matrices.h"

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/c/handles.h"

namespace crout::c {
namespace {

StorageOrder LayoutOf(const crout_matrix& matrix) {
  return matrix.layout == CROUT_ROW_MAJOR ? StorageOrder::kRowMajor : StorageOrder::kColumnMajor;
}

// Bytes from the first element to the end of the last element of a matrix that is like `m` but has
// leading dimension `ld`.
__int128 Extent(const crout_matrix& m, int64_t ld) {
  if (m.rows <= 0 || m.cols <= 0) return 0;
  const bool by_rows = m.layout == CROUT_ROW_MAJOR;
  const int64_t count = by_rows ? m.rows : m.cols;
  const int64_t length = by_rows ? m.cols : m.rows;
  const auto element = WithType<size_t>(m.dtype, m.data, [](const auto* p) { return sizeof *p; });
  return (static_cast<__int128>(count - 1) * ld + length) * static_cast<__int128>(element);
}

// Whether X and B overlap.
bool Overlap(const crout_matrix& b, const void* x, int64_t ldx) {
  const __int128 from = reinterpret_cast<uintptr_t>(b.data);
  const __int128 to = reinterpret_cast<uintptr_t>(x);
  return from < to + Extent(b, ldx) && to < from + Extent(b, b.ld);
}

// Span of `count` elements at `at`; nullopt for an impossible size, or a null pointer to elements.
template <class T>
std::optional<absl::Span<const T>> ArrayAt(const void* at, int64_t count) {
  constexpr auto kMaxCount = std::numeric_limits<int64_t>::max() / static_cast<int64_t>(sizeof(T));
  if (count < 0 || count > kMaxCount || (at == nullptr && count > 0)) return std::nullopt;
  return absl::Span<const T>(static_cast<const T*>(at), static_cast<size_t>(count));
}

template <class T, class Index>
absl::StatusOr<MatrixSource> SparseSource(const crout_sparse& a) {
  const bool by_entry = a.rows != nullptr || (a.row_start == nullptr && a.count == 0);
  const auto values = ArrayAt<T>(a.values, a.count);
  const auto cols = ArrayAt<Index>(a.cols, a.count);
  const auto rows = by_entry ? ArrayAt<Index>(a.rows, a.count)
                    : a.n < std::numeric_limits<int64_t>::max()
                        ? ArrayAt<Index>(a.row_start, a.n + 1)
                        : std::nullopt;
  if (!values || !cols || !rows || a.n < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a sparse matrix of order ", a.n, " and ", a.count,
                     " entries has no valid size, or null in place of an array"));
  }
  return by_entry ? MatrixSource::Coordinates(*values, *rows, *cols, a.n, a.n)
                  : MatrixSource::CompressedRows(*values, *rows, *cols, a.n, a.n);
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

absl::StatusOr<MatrixSource> SourceOf(const crout_matrix* m) {
  if (absl::Status status = CheckMatrix(m); !status.ok()) return status;
  return SourceOf(*m);
}

absl::StatusOr<MatrixSource> SourceOf(const crout_sparse* given) {
  if (given == nullptr) return absl::InvalidArgumentError("the matrix is null");
  const auto known = ReadStruct(given);
  if (!known.ok()) return known.status();
  const crout_sparse& a = *known;
  if (absl::Status status = CheckType(a.dtype); !status.ok()) return status;
  if (a.index_bytes != 4 && a.index_bytes != 8) {
    return absl::InvalidArgumentError(
        absl::StrCat("indices have 4 or 8 bytes, not index_bytes = ", a.index_bytes));
  }
  return WithType<absl::StatusOr<MatrixSource>>(a.dtype, a.values, [&](const auto* values) {
    using T = std::remove_const_t<std::remove_pointer_t<decltype(values)>>;
    return a.index_bytes == 4 ? SparseSource<T, int32_t>(a) : SparseSource<T, int64_t>(a);
  });
}

absl::StatusOr<MatrixSource> ValuesOf(int32_t dtype, const void* values, int64_t count,
                                      const FactorDescription& factor) {
  if (absl::Status status = CheckType(dtype); !status.ok()) return status;
  return WithType<absl::StatusOr<MatrixSource>>(
      dtype, values, [&](const auto* typed) -> absl::StatusOr<MatrixSource> {
        using T = std::remove_const_t<std::remove_pointer_t<decltype(typed)>>;
        const auto elements = ArrayAt<T>(typed, count);
        if (elements) {
          return MatrixSource::SparseValues(*elements,
                                            factor.sparse ? factor.sparse->pattern_digest : "");
        }
        return absl::InvalidArgumentError(
            absl::StrCat(count, " values have no valid size, or are null"));
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

absl::StatusOr<Algorithm> AlgorithmOf(const char* name) {
  const auto algorithm = FromName<Algorithm>(absl::AsciiStrToLower(name));
  if (algorithm) return *algorithm;
  return absl::InvalidArgumentError(absl::StrCat("no algorithm is called ", name));
}

std::optional<Operation> OperationOf(int32_t transpose) {
  switch (transpose) {
    case CROUT_NO_TRANSPOSE:
      return Operation::kNone;
    case CROUT_TRANSPOSE:
      return Operation::kTranspose;
    case CROUT_CONJUGATE_TRANSPOSE:
      return Operation::kConjugateTranspose;
    default:
      return std::nullopt;
  }
}

}  // namespace crout::c
