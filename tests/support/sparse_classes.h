// SPDX-License-Identifier: Apache-2.0

// Sparse matrices from the classes on which direct solvers differ most.
#ifndef CROUT_TESTS_SUPPORT_SPARSE_CLASSES_H_
#define CROUT_TESTS_SUPPORT_SPARSE_CLASSES_H_

#include <cstdint>
#include <vector>

#include "tests/support/sparse_gallery.h"

namespace crout::testing {

// The entries and the order of a matrix. Duplicates are summed. Equal arguments give equal entries.
struct SparseProblem {
  std::vector<SparseEntry> entries;
  int64_t n = 0;
};

// -Laplace(u) - wave^2 u on m^2 or m^3 points with a 5-point or 7-point stencil, in units of the
// mesh width. wave2 = 0 is Poisson's equation; wave2 > 0 is Helmholtz's, which is indefinite.
SparseProblem Laplacian(int64_t m, int dimensions, double wave2);
// Standard normal entries on 2 p + 1 diagonals, plus 8 on the main diagonal.
SparseProblem Banded(int64_t n, int64_t p);
// A diagonal matrix with a full last row and column.
SparseProblem Arrow(int64_t n);
// Modified nodal analysis. Conductances span eight decades between nearby and a few distant nodes.
// Has controlled sources. One node in 50 has a voltage source, whose row has a zero diagonal.
SparseProblem Circuit(int64_t n);
// The Jacobian of a power flow: 2 x 2 blocks on a meshed tree with 1.3 branches per bus.
SparseProblem PowerGrid(int64_t buses);
// [H C'; C 0] with n variables in H and n / 4 constraints in C, each on four nearby variables.
SparseProblem Kkt(int64_t n);
// Stokes' equations on m x m staggered cells. The diagonal of the pressure block is zero except for
// one cell.
SparseProblem Stokes(int64_t m);
// Dense 4 x 4 blocks on the five-point stencil of m x m cells.
SparseProblem Blocks(int64_t m);
// Three entries per row in random columns besides the diagonal.
SparseProblem Scattered(int64_t n);

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_SPARSE_CLASSES_H_
