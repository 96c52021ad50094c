// Local matrices of a domain decomposition (BDDC) of Poisson's equation on a cube: the `poc-*`
// matrices of L. M. Cejka's thesis (CTU 2023, 2.3), as BDDCML's poisson_on_cube makes them.
#ifndef CROUT_TESTS_BENCH_CROUT_BENCH_POISSON_CUBE_H_
#define CROUT_TESTS_BENCH_CROUT_BENCH_POISSON_CUBE_H_

#include <cstdint>
#include <vector>

namespace crout::bench {

// Where in the cube a subdomain lies. The sides that it does not share with others are on the
// cube's boundary, where u = 0.
struct CubePlace {
  int64_t subdomains = 4;  // along an edge of the cube
  int shared_sides = 3;    // 3: in a corner; 4: at an edge; 5: at a face; 6: inside
};

// [S C^T; C 0], S the Schur complement of a subdomain's stiffness matrix on its shared sides, in
// `elements` trilinear elements along an edge, and C its constraints: a row for each corner, and
// for each edge and face that is shared and not on the boundary. Nodes by x, then y, then z.
struct LocalProblem {
  int64_t n = 0;
  std::vector<double> values;  // n x n, column-major
};

// Rows of C: 13, 17, 21 or 26, by the sides that are shared.
int64_t PoissonCubeConstraints(const CubePlace& place);
int64_t PoissonCubeOrder(int64_t elements, const CubePlace& place);
LocalProblem MakePoissonCube(int64_t elements, const CubePlace& place);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_POISSON_CUBE_H_
