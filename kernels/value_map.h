// SPDX-License-Identifier: Apache-2.0

// Maps the values on the lines of a matrix text to the elements of the matrix.
#ifndef CROUT_KERNELS_VALUE_MAP_H_
#define CROUT_KERNELS_VALUE_MAP_H_

#include <cstddef>
#include <cstdint>

namespace crout {

// Sizes and constants of a map, besides its two arrays.
struct ValueMapShape {
  // Largest number of lines. A source then has two bits for flags besides its line, and there are
  // at most 2^31 - 2 sources.
  static constexpr int64_t kMaxLines = (int64_t{1} << 30) - 1;

  int64_t lines = 0;
  int64_t elements = 0;  // stored elements of the matrix
  int64_t sources = 0;   // lines, counting a line twice if it is mirrored across the diagonal
  // Factors applied to the real and imaginary parts of a mirrored value.
  double mirror_sign = 1;
  double imaginary_mirror_sign = 1;

  size_t bytes() const { return (elements + 1 + sources) * sizeof(int32_t); }
};

// Element e is the sum of the values at source[start[e]] to source[start[e + 1] - 1], in this
// order, or 0 if there are none. Indices are 0-based. If one thread computes an element, sums need
// no atomics and are bitwise reproducible.
struct ValueMap {
  // Flags of a source; its other bits are the line number.
  static constexpr uint32_t kMirrored = uint32_t{1} << 31;
  static constexpr uint32_t kReal = uint32_t{1} << 30;  // its imaginary part must be zero
  static constexpr uint32_t kLine = kReal - 1;

  // `block`: shape.bytes() bytes, `start` followed by `source`.
  ValueMap(const std::byte* block, const ValueMapShape& shape)
      : shape(shape),
        start(reinterpret_cast<const int32_t*>(block)),
        source(reinterpret_cast<const uint32_t*>(start + shape.elements + 1)) {}

  ValueMapShape shape;
  const int32_t* start;
  const uint32_t* source;
};

}  // namespace crout

#endif  // CROUT_KERNELS_VALUE_MAP_H_
