// SPDX-License-Identifier: Apache-2.0

// Checked access to the memory that a group shares.
#ifndef CROUT_RANK_SHARED_MEMORY_H_
#define CROUT_RANK_SHARED_MEMORY_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "crout/rank/v1/rank_service.pb.h"

namespace crout::rank {

// Ends the job with this error.
[[noreturn]] inline void Refuse(const std::string& what) { throw std::invalid_argument(what); }

inline std::span<std::byte> At(std::span<std::byte> memory, const v1::Range& range) {
  if (range.offset() > memory.size() || range.bytes() > memory.size() - range.offset()) {
    Refuse("a range ends outside the shared memory of " + std::to_string(memory.size()) + " bytes");
  }
  return memory.subspan(range.offset(), range.bytes());
}

// An array of at least `count` elements.
template <class T>
T* ArrayAt(std::span<std::byte> memory, const v1::Range& range, int64_t count) {
  const std::span<std::byte> bytes = At(memory, range);
  if (count < 0 || bytes.size() / sizeof(T) < static_cast<uint64_t>(count)) {
    Refuse("an array of " + std::to_string(count) + " elements is longer than its range");
  }
  return reinterpret_cast<T*>(bytes.data());
}

// A column-major matrix.
template <class T>
struct SharedMatrix {
  SharedMatrix(std::span<std::byte> memory, const v1::Matrix& matrix)
      : rows(matrix.rows()), cols(matrix.cols()), ld(matrix.ld()) {
    if (rows < 1 || cols < 1 || ld < rows || ld > INT32_MAX || cols > INT32_MAX) {
      Refuse("a matrix has " + std::to_string(rows) + " rows, " + std::to_string(cols) +
             " columns and the leading dimension " + std::to_string(ld));
    }
    data = ArrayAt<T>(memory, matrix.range(), ld * (cols - 1) + rows);
  }

  int64_t rows;
  int64_t cols;
  int64_t ld;
  T* data;
};

template <class T>
struct ElementType {
  using type = T;
};

// Returns f(ElementType<T>()) for the C++ type of `dtype`.
template <class F>
decltype(auto) DispatchType(v1::Dtype dtype, F&& f) {
  switch (dtype) {
    case v1::DTYPE_F32:
      return f(ElementType<float>());
    case v1::DTYPE_F64:
      return f(ElementType<double>());
    case v1::DTYPE_C64:
      return f(ElementType<std::complex<float>>());
    case v1::DTYPE_C128:
      return f(ElementType<std::complex<double>>());
    default:
      Refuse("unknown element type " + std::to_string(dtype));
  }
}

}  // namespace crout::rank

#endif  // CROUT_RANK_SHARED_MEMORY_H_
