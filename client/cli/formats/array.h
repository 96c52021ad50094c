// SPDX-License-Identifier: Apache-2.0

// Matrices in memory.
#ifndef CROUT_CLIENT_CLI_FORMATS_ARRAY_H_
#define CROUT_CLIENT_CLI_FORMATS_ARRAY_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "crout/matrix_source.h"

namespace crout::cli {

// Element types of files: those of the wire protocol, and integers for permutations.
enum class Element { kFloat32, kFloat64, kComplex64, kComplex128, kInt64 };

Element ElementOf(Dtype dtype);
bool IsComplex(Element element);
size_t SizeOf(Element element);

// Calls f with the element at `at`, which need not be aligned: a float, double, std::complex of
// either, or int64_t.
template <class F>
auto WithElement(Element element, const std::byte* at, F f) {
  const auto read = [&](auto value) {
    std::memcpy(&value, at, sizeof value);
    return f(value);
  };
  switch (element) {
    case Element::kFloat32:
      return read(float{});
    case Element::kComplex64:
      return read(std::complex<float>{});
    case Element::kComplex128:
      return read(std::complex<double>{});
    case Element::kInt64:
      return read(int64_t{});
    default:
      return read(double{});
  }
}

// Calls f with a zero of the type `dtype`; float64 if unspecified.
template <class F>
auto WithType(Dtype dtype, F f) {
  switch (dtype) {
    case Dtype::kFloat32:
      return f(float{});
    case Dtype::kComplex64:
      return f(std::complex<float>{});
    case Dtype::kComplex128:
      return f(std::complex<double>{});
    default:
      return f(double{});
  }
}

// Reassembles elements that are split between pieces of input.
class ElementDecoder {
 public:
  explicit ElementDecoder(Element element) : element_(element) {}

  // Calls f with each complete element.
  template <class F>
  void Append(absl::Span<const std::byte> bytes, F f) {
    const size_t size = SizeOf(element_);
    while (!bytes.empty()) {
      if (partial_size_ == 0 && bytes.size() >= size) {
        WithElement(element_, bytes.data(), f);
        bytes.remove_prefix(size);
        continue;
      }
      partial_[partial_size_++] = bytes.front();
      bytes.remove_prefix(1);
      if (partial_size_ < size) continue;
      partial_size_ = 0;
      WithElement(element_, partial_, f);
    }
  }

 private:
  Element element_;
  size_t partial_size_ = 0;
  std::byte partial_[sizeof(std::complex<double>)];
};

// rows * cols elements, packed in the order of `layout`.
struct Array {
  Dtype dtype = Dtype::kFloat64;
  StorageOrder layout = StorageOrder::kColumnMajor;
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<std::byte> bytes;

  // Source of the matrix; refers to `bytes`.
  MatrixSource Source() const;
  std::complex<double> At(int64_t row, int64_t col) const;
  // The same matrix in column-major order.
  Array ByColumns() &&;
  // Converts to another type. INVALID_ARGUMENT from complex to real.
  absl::StatusOr<Array> As(Dtype wanted) &&;
};

// The elements of an array of type T.
template <class T>
absl::Span<const T> ElementsOf(const Array& array) {
  return {reinterpret_cast<const T*>(array.bytes.data()), array.bytes.size() / sizeof(T)};
}

// Entry k is element k of `values` at (row[k], col[k]), 0-based and within rows x cols; duplicates
// are summed.
struct SparseArray {
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<int32_t> row;
  std::vector<int32_t> col;
  Array values;  // a column

  // Source of the matrix; refers to this object.
  MatrixSource Source() const;
  // The entry_digest that a series reports if it sends this matrix with Source().
  std::string EntryDigest() const;
  // Converts to another type, as Array::As.
  absl::StatusOr<SparseArray> As(Dtype wanted) &&;
};

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_FORMATS_ARRAY_H_
