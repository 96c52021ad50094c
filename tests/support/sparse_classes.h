// Sparse matrices of the classes on which direct solvers differ most.
#ifndef CROUT_TESTS_SUPPORT_SPARSE_CLASSES_H_
#define CROUT_TESTS_SUPPORT_SPARSE_CLASSES_H_

#include <cstdint>
#include <vector>

#include "tests/support/sparse_gallery.h"

namespace crout::testing {

// Entries of a matrix and its order. Duplicates are summed. Equal arguments give equal entries.
struct SparseProblem {
  std::vector<SparseEntry> entries;
  int64_t n = 0;
};

// -Laplace(u) - wave^2 u on m^2 or m^3 points, 5 or 7 points, in units of the mesh width. wave2 =
// 0: Poisson's equation; above 0: Helmholtz's, indefinite.
SparseProblem Laplacian(int64_t m, int dimensions, double wave2);
// Standard normal entries on 2 p + 1 diagonals, plus 8 on the main one.
SparseProblem Banded(int64_t n, int64_t p);
// A diagonal, and a last row and column without zeros.
SparseProblem Arrow(int64_t n);
// Modified nodal analysis: conductances over eight decades between nearby nodes, some far ones,
// controlled sources, and for one node in 50 a voltage source, whose row has a zero diagonal.
SparseProblem Circuit(int64_t n);
// The Jacobian of a power flow: 2 x 2 blocks on a meshed tree, 1.3 branches for each bus.
SparseProblem PowerGrid(int64_t buses);
// [H C'; C 0], H of n variables, C of n / 4 constraints on four nearby variables each.
SparseProblem Kkt(int64_t n);
// Stokes' equations on m x m staggered cells; the pressure's diagonal is zero but for one cell.
SparseProblem Stokes(int64_t m);
// Dense 4 x 4 blocks on the five-point stencil of m x m cells.
SparseProblem Blocks(int64_t m);
// Three entries for each row in random columns beside the diagonal.
SparseProblem Scattered(int64_t n);

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_SPARSE_CLASSES_H_
