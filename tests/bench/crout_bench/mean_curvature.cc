// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/crout_bench/mean_curvature.h"

#include <cmath>

namespace crout::bench {
namespace {

constexpr double kTimeStep = 0.1;  // time step over h^2
constexpr int kMaxSweeps = 1000;

}  // namespace

MeanCurvatureFlow::MeanCurvatureFlow(int64_t grid)
    : grid_(grid), h_(2.0 / static_cast<double>(grid)), u_(grid * grid, 0.0) {
  for (int64_t y = 1; y + 1 < grid; ++y) {
    for (int64_t x = 1; x + 1 < grid; ++x) {
      const double px = (static_cast<double>(x) + 0.5) * h_ - 1;
      const double py = (static_cast<double>(y) + 0.5) * h_ - 1;
      const double square = px * px + py * py;
      u_[x + y * grid] = std::exp(-5 * square) * std::sin(10 * std::sqrt(square));
    }
  }
}

double MeanCurvatureFlow::Slope(int64_t x, int64_t y) const {
  if (step_ == 1) return 1;
  const double dx = x + 1 < grid_ ? (At(x + 1, y) - At(x, y)) / h_ : 0;
  const double dy = y + 1 < grid_ ? (At(x, y + 1) - At(x, y)) / h_ : 0;
  return std::sqrt(1 + dx * dx + dy * dy);
}

double MeanCurvatureFlow::AverageSlope(int64_t x, int64_t y) const {
  if (step_ == 1) return 1;
  const double east = (At(x + 1, y) - At(x, y)) / h_;
  const double west = (At(x, y) - At(x - 1, y)) / h_;
  const double north = (At(x, y + 1) - At(x, y)) / h_;
  const double south = (At(x, y) - At(x, y - 1)) / h_;
  return std::sqrt(1 + 0.5 * (east * east + west * west + north * north + south * south));
}

MeanCurvatureFlow::Stencil MeanCurvatureFlow::Coefficients(int64_t x, int64_t y) const {
  if (Outer(x, y)) return {1, 0, 0, 0, 0};
  const double factor = kTimeStep * AverageSlope(x, y);  // time step over h^2
  const double here = factor / Slope(x, y);
  const double west = factor / Slope(x - 1, y);
  const double south = factor / Slope(x, y - 1);
  return {1 + 2 * here + west + south, -west, -here, -south, -here};
}

std::vector<double> MeanCurvatureFlow::Matrix() const {
  std::vector<double> a(n() * n(), 0.0);
  for (int64_t y = 0; y < grid_; ++y) {
    for (int64_t x = 0; x < grid_; ++x) {
      const int64_t row = x + y * grid_;
      const Stencil c = Coefficients(x, y);
      a[row + row * n()] = c[0];
      if (Outer(x, y)) continue;
      a[row + (row - 1) * n()] = c[1];
      a[row + (row + 1) * n()] = c[2];
      a[row + (row - grid_) * n()] = c[3];
      a[row + (row + grid_) * n()] = c[4];
    }
  }
  return a;
}

void MeanCurvatureFlow::Advance() {
  std::vector<Stencil> coefficients;
  for (int64_t y = 0; y < grid_; ++y) {
    for (int64_t x = 0; x < grid_; ++x) coefficients.push_back(Coefficients(x, y));
  }
  std::vector<double> next = u_;
  bool changed = true;
  for (int sweep = 0; changed && sweep < kMaxSweeps; ++sweep) {
    changed = false;
    for (int64_t y = 1; y + 1 < grid_; ++y) {
      for (int64_t x = 1; x + 1 < grid_; ++x) {
        const int64_t k = x + y * grid_;
        const Stencil& c = coefficients[k];
        const double value = (u_[k] - c[1] * next[k - 1] - c[2] * next[k + 1] -
                              c[3] * next[k - grid_] - c[4] * next[k + grid_]) /
                             c[0];
        changed = changed || value != next[k];
        next[k] = value;
      }
    }
  }
  u_ = next;
  ++step_;
}

}  // namespace crout::bench
