// SPDX-License-Identifier: Apache-2.0

// The square sections of the iterative Crout method.
#ifndef CROUT_KERNELS_ICM_SECTIONS_H_
#define CROUT_KERNELS_ICM_SECTIONS_H_

#include <cstdint>

namespace crout {

constexpr int64_t RoundedUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Returns n/10 clamped to [256, 1024], as published (Cejka 2023), rounded up to `block` (>= 1).
constexpr int64_t PublishedSectionSize(int64_t n, int64_t block) {
  const int64_t tenth = n / 10;
  return RoundedUp(tenth < 256 ? 256 : tenth > 1024 ? 1024 : tenth, block);
}

// Section i covers [i * size, (i + 1) * size) of n rows or columns; the last may be smaller.
struct SectionGrid {
  int64_t n = 0;
  int64_t size = 1;

  constexpr int64_t count() const { return (n + size - 1) / size; }
  constexpr int64_t begin(int64_t i) const { return i * size; }
  constexpr int64_t end(int64_t i) const { return (i + 1) * size < n ? (i + 1) * size : n; }
};

// Upper bound of the sweeps of a section of `size` with tolerance 0. Each pivoting round (at most
// one per column, and a final one) converges in 2 * size sweeps, because a sweep completes at least
// one step of the longest dependency chain.
constexpr int64_t SweepBound(int64_t size) { return 2 * size * (size + 1); }

}  // namespace crout

#endif  // CROUT_KERNELS_ICM_SECTIONS_H_
