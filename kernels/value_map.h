// How the values of a text's lines become the elements of the matrix that it is of.
#ifndef CROUT_KERNELS_VALUE_MAP_H_
#define CROUT_KERNELS_VALUE_MAP_H_

#include <cstddef>
#include <cstdint>

namespace crout {

// What is known of a map beside its two arrays.
struct ValueMapShape {
  // A map of as many lines has a bit for each of its flags beside them, and at most 2^31 - 2
  // sources.
  static constexpr int64_t kMostLines = (int64_t{1} << 30) - 1;

  int64_t lines = 0;
  int64_t elements = 0;  // of the matrix, as it is stored
  int64_t sources = 0;   // lines, those twice that are mirrored across the diagonal
  // What the parts of a mirrored value are multiplied by.
  double mirror_sign = 1;
  double imaginary_mirror_sign = 1;

  size_t bytes() const { return (elements + 1 + sources) * sizeof(int32_t); }
};

// Element e is the sum of the values that source[start[e]] to source[start[e + 1] - 1] say, in this
// order, and 0 where there are none. Indices count from 0. Who gives an element to one thread sums
// without atomics, and always to the same bits.
struct ValueMap {
  // Of a source, beside the number of its line.
  static constexpr uint32_t kMirrored = uint32_t{1} << 31;
  static constexpr uint32_t kReal = uint32_t{1} << 30;  // its imaginary part has to be zero
  static constexpr uint32_t kLine = kReal - 1;

  // `block`: shape.bytes() bytes, `start` and then `source`.
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
