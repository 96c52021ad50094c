// SPDX-License-Identifier: Apache-2.0

// The indefinite Maxwell problem used in the literature to measure sparse LU methods (A.
// Abdelfattah, P. Ghysels, W. Boukaram, S. Tomov, X. S. Li, J. Dongarra, "Addressing irregular
// patterns of matrix computations on GPUs and their impact on applications powered by sparse direct
// solvers", SC22).
#ifndef CROUT_TESTS_SUPPORT_MATRICES_MAXWELL_H_
#define CROUT_TESTS_SUPPORT_MATRICES_MAXWELL_H_

#include <array>
#include <complex>
#include <cstdint>
#include <vector>

#include "tests/support/matrices/sparse_gallery.h"

namespace crout::testing {

// curl curl E - Omega^2 (1 + i loss) E = f in a torus, discretized by the lowest-order Nedelec
// elements on hexahedra. The tangential part of E is given on the surface. With f = (k^2 - Omega^2
// (1 + i loss)) E and k = Omega / 1.05 the solution is E = (sin k x2, sin k x3, sin k x1).
//
// The torus has radius 1 and a square cross-section of half diagonal 0.4. The mesh has N x N x m
// trilinear cells with vertices on the exact torus: N = 2^r, and m = 6 * 2^r along the ring. The
// published mesh is twisted, which changes the values but neither the order nor the pattern.
//
// An unknown is the integral of E along an edge in the direction of increasing indices. The rows
// and columns of edges on the surface equal those of the identity; their other entries are stored
// zeros. The matrix is symmetric, and real without loss.
class MaxwellTorus {
 public:
  // `refinements` is r >= 0. `omega` is Omega; 0 selects 16 * 2^(r - 5), which gives the same
  // number of points per wavelength for every r.
  explicit MaxwellTorus(int refinements, double omega = 0, double loss = 0);

  // Number of unknowns, m (2 N (N + 1) + (N + 1)^2): 1,560, 10,800, 79,968 and 614,592 for r = 2 to
  // 5.
  int64_t n() const { return ring_ * per_slice(); }
  // Distinct entries, by columns with ascending rows: 40,728, 314,928, 2,476,128 and 19,636,416 for
  // r = 2 to 5.
  std::vector<SparseEntry> Entries() const;
  std::vector<std::complex<double>> RightHandSide() const;  // n() elements
  // Returns |E_h - E| / |E| in the L2 norm, where E_h is the field of the n() unknowns `x`.
  double ErrorOf(const std::vector<std::complex<double>>& x) const;

 private:
  using Vector = std::array<double, 3>;
  struct Point;  // a quadrature point
  using ElementMatrix = std::array<std::array<std::complex<double>, 12>, 12>;

  int64_t per_slice() const { return 2 * side_ * (side_ + 1) + (side_ + 1) * (side_ + 1); }
  Vector VertexAt(int64_t i, int64_t j, int64_t k) const;
  // Returns the edges of cell (i, j, k): four in the first direction, at (j, k), (j + 1, k),
  // (j, k + 1) and (j + 1, k + 1), then four in each other direction.
  std::array<int64_t, 12> EdgesOf(int64_t i, int64_t j, int64_t k) const;
  int64_t EdgeAt(int direction, int64_t i, int64_t j, int64_t k) const;
  std::vector<Point> PointsOf(int64_t i, int64_t j, int64_t k) const;
  ElementMatrix MatrixOf(int64_t i, int64_t j) const;
  Vector FieldAt(const Vector& x) const;
  // Returns for each edge whether it is on the surface. Sets its element of `integrals` to the
  // integral of E along the edge if it is, else to 0.
  std::vector<bool> SurfaceEdges(std::vector<double>* integrals) const;

  int64_t side_;  // N
  int64_t ring_;  // m
  double kappa_;
  std::complex<double> omega_squared_;  // Omega^2 (1 + i loss)
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_MATRICES_MAXWELL_H_
