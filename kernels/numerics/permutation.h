// SPDX-License-Identifier: Apache-2.0

// Converts between row permutations and getrf's interchanges.
#ifndef CROUT_KERNELS_NUMERICS_PERMUTATION_H_
#define CROUT_KERNELS_NUMERICS_PERMUTATION_H_

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace crout {

// Returns p with (PA)[i, :] = A[p[i], :], 0-based, for n interchanges (1-based, as in LAPACK).
inline std::vector<int64_t> PermutationOf(const int64_t* ipiv, int64_t n) {
  std::vector<int64_t> p(n);
  std::iota(p.begin(), p.end(), int64_t{0});
  for (int64_t i = 0; i < n; ++i) std::swap(p[i], p[ipiv[i] - 1]);
  return p;
}

// Computes the interchanges, applied in order from i = 0, that produce the permutation p.
inline void InterchangesOf(const std::vector<int64_t>& p, int64_t* ipiv) {
  const auto n = static_cast<int64_t>(p.size());
  std::vector<int64_t> row_at(n);  // row of A at each place, after the interchanges so far
  std::iota(row_at.begin(), row_at.end(), int64_t{0});
  std::vector<int64_t> place_of = row_at;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t place = place_of[p[i]];
    ipiv[i] = place + 1;
    std::swap(row_at[i], row_at[place]);
    place_of[row_at[place]] = place;
    place_of[row_at[i]] = i;
  }
}

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_PERMUTATION_H_
