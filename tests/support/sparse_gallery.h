// Sparse matrices that are too large for their dense form.
#ifndef CROUT_TESTS_SUPPORT_SPARSE_GALLERY_H_
#define CROUT_TESTS_SUPPORT_SPARSE_GALLERY_H_

#include <complex>
#include <cstdint>
#include <vector>

#include "tests/support/packed_sparse.h"

namespace crout::testing {

struct SparseEntry {
  int32_t row;
  int32_t column;
  std::complex<double> value;
};

// Of entries in any order; those of one place are summed, zeros are stored. Of a real type the real
// parts.
PackedSparse PackEntries(std::vector<SparseEntry> entries, int64_t n, DType dtype);

// Convection and diffusion on a grid of m^2 or m^3 points, upwind, 5 or 7 points, wind (20, 10, 5):
// diagonal 2 d + h (w1 + ...), -1 - h w_d towards smaller and -1 towards larger indices, h = 1 / (m
// + 1).
std::vector<SparseEntry> GridEntries(int64_t m, int dimensions);

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_SPARSE_GALLERY_H_
