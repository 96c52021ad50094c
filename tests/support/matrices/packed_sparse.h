// SPDX-License-Identifier: Apache-2.0

// Sparse matrices in the format that jobs take.
#ifndef CROUT_TESTS_SUPPORT_MATRICES_PACKED_SPARSE_H_
#define CROUT_TESTS_SUPPORT_MATRICES_PACKED_SPARSE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/sparse_view.h"
#include "tests/support/matrices/gallery.h"

namespace crout::testing {

// An AnySparse together with its memory.
struct PackedSparse {
  AnySparse view() const { return {bytes.data(), dtype, n, nonzeros}; }

  std::vector<std::byte> bytes;
  DType dtype = DType::kFloat64;
  int64_t n = 0;
  int64_t nonzeros = 0;
};

// Packs an n x n matrix without its zeros; -0 is stored. `Scalar` may be complex for any type, but
// the elements must be real if the type is real.
template <class Scalar = double>
PackedSparse PackSparse(const std::vector<Scalar>& a, int64_t n, DType dtype);

// An n x n matrix with about `density` * n^2 entries, uniform in [-1, 1) except that one in ten is
// -0. Diagonal entries have a magnitude from 2 to 3. With `holes`, rows and columns whose 1-based
// index is divisible by 7 are empty.
HostMatrix RandomSparse(int64_t n, double density, uint64_t seed, bool holes = false);

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_MATRICES_PACKED_SPARSE_H_
