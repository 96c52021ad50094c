// Mean curvature flow of a surface z = u(x, y) on a square, semi-implicit finite differences: the
// series of matrices of L. M. Cejka's thesis (CTU 2023, 3.3), by its description.
#ifndef CROUT_TESTS_BENCH_CROUT_BENCH_MEAN_CURVATURE_H_
#define CROUT_TESTS_BENCH_CROUT_BENCH_MEAN_CURVATURE_H_

#include <array>
#include <cstdint>
#include <vector>

namespace crout::bench {

// grid x grid points of a square of side 2 centred at 0, numbered by x, then y; at the outer ones
// u = 0. At first u = exp(-5 (x^2 + y^2)) sin(10 sqrt(x^2 + y^2)). With a time step of 0.1 h^2,
// each step solves A u' = u, A from the gradients of the present u, and from none in the first
// step.
class MeanCurvatureFlow {
 public:
  explicit MeanCurvatureFlow(int64_t grid);

  int64_t n() const { return grid_ * grid_; }
  int step() const { return step_; }
  const std::vector<double>& u() const { return u_; }
  // The matrix of the present step, n x n, column-major: strictly dominant by rows.
  std::vector<double> Matrix() const;
  // Solves, by sweeps of Gauss and Seidel until nothing changes, and goes on to the next step.
  void Advance();

 private:
  // Of a point and of those west, east, south and north of it.
  using Stencil = std::array<double, 5>;

  double At(int64_t x, int64_t y) const { return u_[x + y * grid_]; }
  bool Outer(int64_t x, int64_t y) const {
    return x == 0 || y == 0 || x == grid_ - 1 || y == grid_ - 1;
  }
  double Slope(int64_t x, int64_t y) const;         // q, by forward differences
  double AverageSlope(int64_t x, int64_t y) const;  // q with a bar, by both
  Stencil Coefficients(int64_t x, int64_t y) const;

  const int64_t grid_;
  const double h_;
  int step_ = 1;
  std::vector<double> u_;
};

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_MEAN_CURVATURE_H_
