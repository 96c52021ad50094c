// SPDX-License-Identifier: Apache-2.0

#include "client/cli/formats/array.h"

#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "kernels/util/digest.h"

namespace crout::cli {
namespace {

// Converts `count` elements from `bytes` to To. A complex element cannot become real.
template <class To>
std::vector<std::byte> Converted(Element element, absl::Span<const std::byte> bytes) {
  const size_t size = SizeOf(element);
  std::vector<std::byte> converted(bytes.size() / size * sizeof(To));
  for (size_t from = 0, to = 0; from < bytes.size(); from += size, to += sizeof(To)) {
    const To value = WithElement(element, &bytes[from], [](auto v) -> To {
      using From = decltype(v);
      if constexpr (std::is_arithmetic_v<From>) {
        using Part = decltype(std::real(To()));
        return static_cast<Part>(v);
      } else if constexpr (std::is_arithmetic_v<To>) {
        return To{};
      } else {
        return static_cast<To>(v);
      }
    });
    std::memcpy(&converted[to], &value, sizeof value);
  }
  return converted;
}

}  // namespace

Element ElementOf(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat32:
      return Element::kFloat32;
    case Dtype::kComplex64:
      return Element::kComplex64;
    case Dtype::kComplex128:
      return Element::kComplex128;
    default:
      return Element::kFloat64;
  }
}

bool IsComplex(Element element) {
  return element == Element::kComplex64 || element == Element::kComplex128;
}

size_t SizeOf(Element element) {
  switch (element) {
    case Element::kFloat32:
      return sizeof(float);
    case Element::kComplex128:
      return sizeof(std::complex<double>);
    default:
      return 8;
  }
}

MatrixSource Array::Source() const {
  return WithType(dtype, [&](auto type) {
    return MatrixSource::Dense(ElementsOf<decltype(type)>(*this), rows, cols, layout);
  });
}

std::complex<double> Array::At(int64_t row, int64_t col) const {
  const int64_t index = layout == StorageOrder::kRowMajor ? row * cols + col : row + col * rows;
  const Element element = ElementOf(dtype);
  return WithElement(element, &bytes[static_cast<size_t>(index) * SizeOf(element)], [](auto value) {
    return std::complex<double>(static_cast<double>(std::real(value)),
                                static_cast<double>(std::imag(value)));
  });
}

Array Array::ByColumns() && {
  if (layout == StorageOrder::kColumnMajor) return std::move(*this);
  layout = StorageOrder::kColumnMajor;
  if (rows <= 1 || cols <= 1) return std::move(*this);
  const size_t size = SizeOf(ElementOf(dtype));
  const auto m = static_cast<size_t>(rows), n = static_cast<size_t>(cols);
  std::vector<std::byte> by_columns(bytes.size());
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      std::memcpy(&by_columns[(i + j * m) * size], &bytes[(i * n + j) * size], size);
    }
  }
  bytes = std::move(by_columns);
  return std::move(*this);
}

absl::StatusOr<Array> Array::As(Dtype wanted) && {
  if (wanted == dtype) return std::move(*this);
  const Element from = ElementOf(dtype);
  if (IsComplex(from) && !IsComplex(ElementOf(wanted))) {
    return absl::InvalidArgumentError("the matrix is complex. Use --dtype=c64 or --dtype=c128");
  }
  bytes = WithType(wanted, [&](auto type) { return Converted<decltype(type)>(from, bytes); });
  dtype = wanted;
  return std::move(*this);
}

MatrixSource SparseArray::Source() const {
  return WithType(values.dtype, [&](auto type) {
    using T = decltype(type);
    return MatrixSource::Coordinates<T, int32_t>(ElementsOf<T>(values), row, col, rows, cols);
  });
}

std::string SparseArray::EntryDigest() const {
  const auto n = static_cast<uint64_t>(rows);
  uint64_t digest = SplitMix(n);
  for (size_t k = 0; k < row.size(); ++k) {
    const uint64_t place = static_cast<uint64_t>(col[k]) * n + static_cast<uint64_t>(row[k]);
    digest += SplitMix(SplitMix(place) + k);
  }
  return DigestText(digest);
}

absl::StatusOr<SparseArray> SparseArray::As(Dtype wanted) && {
  auto converted = std::move(values).As(wanted);
  if (!converted.ok()) return converted.status();
  values = *std::move(converted);
  return std::move(*this);
}

}  // namespace crout::cli
