// SPDX-License-Identifier: Apache-2.0

#include "tests/support/matrices/packed_sparse.h"

#include <cmath>
#include <complex>
#include <cstring>

namespace crout::testing {
namespace {

bool IsStored(double v) { return v != 0 || std::signbit(v); }
bool IsStored(std::complex<double> v) { return IsStored(v.real()) || IsStored(v.imag()); }

// Appends the bytes of the elements.
template <class T>
void Append(const std::vector<T>& elements, std::vector<std::byte>& bytes) {
  const auto* begin = reinterpret_cast<const std::byte*>(elements.data());
  bytes.insert(bytes.end(), begin, begin + elements.size() * sizeof(T));
}

}  // namespace

template <class Scalar>
PackedSparse PackSparse(const std::vector<Scalar>& a, int64_t n, DType dtype) {
  std::vector<int64_t> column_start = {0}, row_start = {0};
  std::vector<int32_t> row, column, position;
  std::vector<Scalar> value;
  std::vector<int32_t> place(n * n);  // index in `value` of each stored element
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      const Scalar v = a[i + j * n];
      if (!IsStored(v)) continue;
      place[i + j * n] = static_cast<int32_t>(value.size());
      row.push_back(static_cast<int32_t>(i));
      value.push_back(v);
    }
    column_start.push_back(std::ssize(value));
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      if (!IsStored(a[i + j * n])) continue;
      column.push_back(static_cast<int32_t>(j));
      position.push_back(place[i + j * n]);
    }
    row_start.push_back(std::ssize(column));
  }
  PackedSparse packed{{}, dtype, n, std::ssize(value)};
  Append(column_start, packed.bytes);
  Append(row_start, packed.bytes);
  const std::vector<std::byte> values = Packed(value, packed.nonzeros, 1, dtype);
  packed.bytes.insert(packed.bytes.end(), values.begin(), values.end());
  Append(row, packed.bytes);
  Append(column, packed.bytes);
  Append(position, packed.bytes);
  return packed;
}

template PackedSparse PackSparse(const HostMatrix&, int64_t, DType);
template PackedSparse PackSparse(const ComplexMatrix&, int64_t, DType);

HostMatrix RandomSparse(int64_t n, double density, uint64_t seed, bool holes) {
  HostMatrix a = RandomMatrix(n, n, seed);
  const HostMatrix chance = RandomMatrix(n, n, seed + 1);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      double& v = a[i + j * n];
      const double c = std::abs(chance[i + j * n]);
      if (c >= density) v = 0;
      if (c < 0.1 * density) v = -0.0;
      if (i == j) v = std::copysign(2 + c, chance[i + j * n]);
      if (holes && ((i + 1) % 7 == 0 || (j + 1) % 7 == 0)) v = 0;
    }
  }
  return a;
}

}  // namespace crout::testing
