// SPDX-License-Identifier: Apache-2.0

// Block sizes of memory pools.
#ifndef CROUT_KERNELS_UTIL_SIZE_CLASS_H_
#define CROUT_KERNELS_UTIL_SIZE_CLASS_H_

#include <bit>
#include <cstddef>

namespace crout {

// A size class of CachingResource: sixteen per power of two; the smallest is 4 KiB.
struct SizeClass {
  size_t index;
  size_t block_bytes;
};

// Returns the smallest class that holds `bytes` (> 0, at most 2^62).
constexpr SizeClass SizeClassOf(size_t bytes) {
  constexpr size_t kMinBlock = 4096;
  constexpr int kClassesPerOctave = 16;
  if (bytes <= kMinBlock) return {0, kMinBlock};
  const int octave = std::bit_width(bytes - 1) - 1;  // 2^octave < bytes <= 2^(octave + 1)
  const size_t base = size_t{1} << octave;
  const size_t step = base / kClassesPerOctave;
  const size_t steps = (bytes - base + step - 1) / step;  // 1..16
  const size_t octaves_below = octave - (std::bit_width(kMinBlock) - 1);
  return {octaves_below * kClassesPerOctave + steps, base + steps * step};
}

inline constexpr size_t kLargestBlock = size_t{1} << 62;

// Returns the bytes that a buffer of `bytes` occupies and is charged for: at most 1/16 more than
// `bytes` above 4 KiB. 0 for 0.
constexpr size_t BlockBytes(size_t bytes) {
  return bytes == 0 || bytes > kLargestBlock ? bytes : SizeClassOf(bytes).block_bytes;
}

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_SIZE_CLASS_H_
