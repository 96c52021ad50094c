// Sparse matrices as jobs take them.
#ifndef CROUT_TESTS_SUPPORT_PACKED_SPARSE_H_
#define CROUT_TESTS_SUPPORT_PACKED_SPARSE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/sparse_view.h"
#include "tests/support/gallery.h"

namespace crout::testing {

// An AnySparse with its memory.
struct PackedSparse {
  AnySparse view() const { return {bytes.data(), dtype, n, nonzeros}; }

  std::vector<std::byte> bytes;
  DType dtype = DType::kFloat64;
  int64_t n = 0;
  int64_t nonzeros = 0;
};

// Of an n x n matrix; its zeros are left out, but for -0. `Scalar` may be complex for any type, and
// its elements are real where that is.
template <class Scalar = double>
PackedSparse PackSparse(const std::vector<Scalar>& a, int64_t n, DType dtype);

// About `density` of the entries, uniform in [-1, 1]; the others are 0, and -0 one in ten of the
// entries. Every row and column has an entry on the diagonal, of magnitude 2 to 3, but for those
// with 1-based numbers that 7 divides, which are empty where `holes`.
HostMatrix RandomSparse(int64_t n, double density, uint64_t seed, bool holes = false);

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_PACKED_SPARSE_H_
