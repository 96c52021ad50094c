// SPDX-License-Identifier: Apache-2.0

// Sparse matrices that are too large for a dense form.
#ifndef CROUT_TESTS_SUPPORT_MATRICES_SPARSE_GALLERY_H_
#define CROUT_TESTS_SUPPORT_MATRICES_SPARSE_GALLERY_H_

#include <complex>
#include <cstdint>
#include <vector>

#include "tests/support/matrices/packed_sparse.h"

namespace crout::testing {

// Indices are 0-based.
struct SparseEntry {
  int32_t row;
  int32_t column;
  std::complex<double> value;
};

// Packs the entries of an n x n matrix, given in any order. Duplicates are summed and zeros are
// stored. A real type takes the real parts.
PackedSparse PackEntries(std::vector<SparseEntry> entries, int64_t n, DType dtype);

// Convection and diffusion by upwind differences on a grid of m^2 or m^3 points, with a stencil of
// 5 or 7 points. The wind w is (20, 10) or (20, 10, 5), and h = 1 / (m + 1). The diagonal is 2 *
// dimensions + h * sum(w). An entry in direction d is -1 - h * w_d towards the smaller index and -1
// towards the larger one.
std::vector<SparseEntry> GridEntries(int64_t m, int dimensions);

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_MATRICES_SPARSE_GALLERY_H_
