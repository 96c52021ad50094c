// SPDX-License-Identifier: Apache-2.0

// Sparse matrices from classes on which direct solvers differ most. Equal arguments give equal
// entries on every platform.
#ifndef CROUT_TESTS_SUPPORT_MATRICES_SPARSE_CLASSES_H_
#define CROUT_TESTS_SUPPORT_MATRICES_SPARSE_CLASSES_H_

#include <cstdint>
#include <vector>

#include "tests/support/matrices/sparse_gallery.h"

namespace crout::testing {

// The entries of a matrix, of which duplicates are summed, and its order.
struct SparseProblem {
  std::vector<SparseEntry> entries;
  int64_t n = 0;
};

// -Laplace(u) - wave2 * u on m^2 or m^3 points with a 5-point or 7-point stencil. The mesh width is
// 1. wave2 = 0 gives Poisson's equation; wave2 > 0 gives Helmholtz's equation, which is indefinite.
SparseProblem Laplacian(int64_t m, int dimensions, double wave2);
// Standard normal entries on 2p + 1 diagonals, plus 8 on the main diagonal. Order n.
SparseProblem Banded(int64_t n, int64_t p);
// A diagonal matrix with a full last row and column. Order n.
SparseProblem Arrow(int64_t n);
// Modified nodal analysis of a circuit. Conductances span eight decades. Most connect nearby nodes,
// a few connect distant ones. One node in ten has a controlled source. One unknown in 50 is the
// current of a voltage source, whose diagonal entry is zero. Order n.
SparseProblem Circuit(int64_t n);
// The Jacobian of a power flow: 2 x 2 blocks on a tree with added branches, 1.3 per bus in total.
// Order 2 * buses.
SparseProblem PowerGrid(int64_t buses);
// [H C'; C 0] with n variables in H and n / 4 constraints in C, each on up to four nearby
// variables.
SparseProblem Kkt(int64_t n);
// Stokes' equations on m x m staggered cells. The diagonal of the pressure block is zero except in
// one cell. Order 2 m (m - 1) + m^2.
SparseProblem Stokes(int64_t m);
// Dense 4 x 4 blocks on the five-point stencil of m x m cells. Order 4 m^2.
SparseProblem Blocks(int64_t m);
// The diagonal and three entries per row in random columns. Order n.
SparseProblem Scattered(int64_t n);

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_MATRICES_SPARSE_CLASSES_H_
