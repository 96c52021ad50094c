// SPDX-License-Identifier: Apache-2.0

// Mean curvature flow of a surface z = u(x, y) on a square, by semi-implicit finite differences.
// Its matrices are the series of L. M. Cejka's thesis (CTU 2023, 3.3).
#ifndef CROUT_TESTS_BENCH_CROUT_BENCH_MEAN_CURVATURE_H_
#define CROUT_TESTS_BENCH_CROUT_BENCH_MEAN_CURVATURE_H_

#include <array>
#include <cstdint>
#include <vector>

namespace crout::bench {

// The domain is a square of side 2, centered at 0, with grid x grid points at distance h, numbered
// by x, then by y. u is 0 on the boundary, and initially exp(-5 (x^2 + y^2)) sin(10 sqrt(x^2 +
// y^2)). The time step is 0.1 h^2. Each step solves A u' = u, where A depends on the gradients of
// u. The first step uses no gradients. `grid` must be at least 3.
class MeanCurvatureFlow {
 public:
  explicit MeanCurvatureFlow(int64_t grid);

  int64_t n() const { return grid_ * grid_; }
  int step() const { return step_; }
  const std::vector<double>& u() const { return u_; }
  // Returns the matrix A of the current step: n x n, column-major, strictly diagonally dominant by
  // rows.
  std::vector<double> Matrix() const;
  // Solves the current step by Gauss-Seidel sweeps until nothing changes, and advances to the next.
  void Advance();

 private:
  // Coefficients of a point and of its west, east, south and north neighbors.
  using Stencil = std::array<double, 5>;

  double At(int64_t x, int64_t y) const { return u_[x + y * grid_]; }
  bool Outer(int64_t x, int64_t y) const {
    return x == 0 || y == 0 || x == grid_ - 1 || y == grid_ - 1;
  }
  double Slope(int64_t x, int64_t y) const;         // q, from forward differences
  double AverageSlope(int64_t x, int64_t y) const;  // q-bar, from forward and backward differences
  Stencil Coefficients(int64_t x, int64_t y) const;

  const int64_t grid_;
  const double h_;
  int step_ = 1;
  std::vector<double> u_;
};

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_MEAN_CURVATURE_H_
