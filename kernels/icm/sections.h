// The square sections that the iterative Crout method works through.
#ifndef CROUT_KERNELS_ICM_SECTIONS_H_
#define CROUT_KERNELS_ICM_SECTIONS_H_

#include <cstdint>

namespace crout {

constexpr int64_t RoundedUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// n/10 within [256, 1024], as published (Cejka 2023), rounded up to `block` (>= 1).
constexpr int64_t PublishedSectionSize(int64_t n, int64_t block) {
  const int64_t tenth = n / 10;
  return RoundedUp(tenth < 256 ? 256 : tenth > 1024 ? 1024 : tenth, block);
}

// Sections [i * size, (i + 1) * size) of n rows and columns; the last may be smaller.
struct SectionGrid {
  int64_t n = 0;
  int64_t size = 1;

  constexpr int64_t count() const { return (n + size - 1) / size; }
  constexpr int64_t begin(int64_t i) const { return i * size; }
  constexpr int64_t end(int64_t i) const { return (i + 1) * size < n ? (i + 1) * size : n; }
};

// Sweeps that no section of `size` exceeds with tolerance 0: each round of pivoting (at most one
// for each column, and a last one) converges in 2 * size sweeps, since a sweep finishes at least
// one step of the longest chain of dependent elements.
constexpr int64_t SweepBound(int64_t size) { return 2 * size * (size + 1); }

}  // namespace crout

#endif  // CROUT_KERNELS_ICM_SECTIONS_H_
