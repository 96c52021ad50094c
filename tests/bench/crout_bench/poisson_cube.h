// SPDX-License-Identifier: Apache-2.0

// Local matrices of a domain decomposition (BDDC) of Poisson's equation on a cube. They are the
// matrices `poc-*` of L. M. Cejka's thesis (CTU 2023, 2.3), which BDDCML's poisson_on_cube
// generates.
#ifndef CROUT_TESTS_BENCH_CROUT_BENCH_POISSON_CUBE_H_
#define CROUT_TESTS_BENCH_CROUT_BENCH_POISSON_CUBE_H_

#include <cstdint>
#include <vector>

namespace crout::bench {

// The place of a subdomain in the cube. Sides that are not shared with other subdomains are on the
// cube's boundary, where u = 0.
struct CubePlace {
  int64_t subdomains = 4;  // number along an edge of the cube
  int shared_sides = 3;    // 3: in a corner; 4: at an edge; 5: at a face; 6: inside
};

// The matrix [S C^T; C 0]. S is the Schur complement of a subdomain's stiffness matrix on its
// shared sides. C has a row for each corner, and for each shared edge and face that is not on the
// boundary. Nodes are ordered by x, then by y, then by z.
struct LocalProblem {
  int64_t n = 0;
  std::vector<double> values;  // n x n, column-major
};

// Returns the number of rows of C: 13, 17, 21 or 26, depending on the shared sides.
int64_t PoissonCubeConstraints(const CubePlace& place);
// Returns the order n of the local matrix, for `elements` trilinear elements (at least 2) along an
// edge of the subdomain.
int64_t PoissonCubeOrder(int64_t elements, const CubePlace& place);
// Returns the local matrix.
LocalProblem MakePoissonCube(int64_t elements, const CubePlace& place);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_POISSON_CUBE_H_
