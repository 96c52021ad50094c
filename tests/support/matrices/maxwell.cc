// SPDX-License-Identifier: Apache-2.0

#include "tests/support/matrices/maxwell.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace crout::testing {
namespace {

using Vector = std::array<double, 3>;
using Matrix = std::array<Vector, 3>;  // array of columns

constexpr double kRadius = 1;
constexpr double kHalfDiagonal = 0.4;
// Points and weights of Gauss quadrature on [0, 1], exact to degree 5.
constexpr double kNodes[] = {0.5 - 0.3872983346207417, 0.5, 0.5 + 0.3872983346207417};
constexpr double kWeights[] = {5.0 / 18, 8.0 / 18, 5.0 / 18};

double Dot(const Vector& a, const Vector& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

Vector Cross(const Vector& a, const Vector& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

Vector Sum(const Vector& a, double factor, const Vector& b) {
  return {a[0] + factor * b[0], a[1] + factor * b[1], a[2] + factor * b[2]};
}

// The linear shape functions 1 - x and x, and their derivatives.
double Line(int end, double x) { return end == 0 ? 1 - x : x; }
double Slope(int end) { return end == 0 ? -1 : 1; }

// Edge e of the reference cell has direction d = e / 4. It lies at one end of each of the other two
// directions.
struct ReferenceEdge {
  explicit ReferenceEdge(int e)
      : d(e / 4), first(d == 0 ? 1 : 0), second(d == 2 ? 1 : 2), at{e % 2, e / 2 % 2} {}

  int d, first, second;
  int at[2];

  // Component d of the edge function; the other components are zero.
  double Value(const Vector& x) const { return Line(at[0], x[first]) * Line(at[1], x[second]); }
  Vector Curl(const Vector& x) const {
    Vector gradient = {};
    gradient[first] = Slope(at[0]) * Line(at[1], x[second]);
    gradient[second] = Line(at[0], x[first]) * Slope(at[1]);
    Vector along = {};
    along[d] = 1;
    return Cross(gradient, along);
  }
};

}  // namespace

// Data at one quadrature point of a cell: its position, its volume weight, and the edge functions
// and their curls, mapped from the reference cell.
struct MaxwellTorus::Point {
  Vector x;
  double weight;
  std::array<Vector, 12> function;
  std::array<Vector, 12> curl;
};

MaxwellTorus::MaxwellTorus(int refinements, double omega, double loss)
    : side_(int64_t{1} << refinements), ring_(6 * side_) {
  if (omega == 0) omega = std::ldexp(16.0, refinements - 5);
  kappa_ = omega / 1.05;
  omega_squared_ = omega * omega * std::complex<double>(1, loss);
}

Vector MaxwellTorus::VertexAt(int64_t i, int64_t j, int64_t k) const {
  const double width = kHalfDiagonal * std::numbers::sqrt2;
  const auto across = [&](int64_t index) {
    return width * (static_cast<double>(index) / static_cast<double>(side_) - 0.5);
  };
  const double angle =
      2 * std::numbers::pi * static_cast<double>(k % ring_) / static_cast<double>(ring_);
  const double radius = kRadius + across(i);
  return {radius * std::cos(angle), radius * std::sin(angle), across(j)};
}

int64_t MaxwellTorus::EdgeAt(int direction, int64_t i, int64_t j, int64_t k) const {
  const int64_t n = side_;
  const int64_t slice = k % ring_ * per_slice();
  if (direction == 0) return slice + i + j * n;
  if (direction == 1) return slice + n * (n + 1) + j + i * n;
  return slice + 2 * n * (n + 1) + i + j * (n + 1);
}

std::array<int64_t, 12> MaxwellTorus::EdgesOf(int64_t i, int64_t j, int64_t k) const {
  std::array<int64_t, 12> edges;
  for (int e = 0; e < 12; ++e) {
    const ReferenceEdge edge(e);
    int64_t at[] = {i, j, k};
    at[edge.first] += edge.at[0];
    at[edge.second] += edge.at[1];
    edges[e] = EdgeAt(edge.d, at[0], at[1], at[2]);
  }
  return edges;
}

std::vector<MaxwellTorus::Point> MaxwellTorus::PointsOf(int64_t i, int64_t j, int64_t k) const {
  Vector vertex[2][2][2];
  for (int v = 0; v < 8; ++v) {
    vertex[v & 1][v >> 1 & 1][v >> 2] = VertexAt(i + (v & 1), j + (v >> 1 & 1), k + (v >> 2));
  }
  std::vector<Point> points;
  for (int p = 0; p < 27; ++p) {
    const int at[] = {p % 3, p / 3 % 3, p / 9};
    const Vector ref = {kNodes[at[0]], kNodes[at[1]], kNodes[at[2]]};
    Vector x = {};
    Matrix jacobian = {};  // column d: the derivative in direction d
    for (int v = 0; v < 8; ++v) {
      const int end[] = {v & 1, v >> 1 & 1, v >> 2};
      const Vector& corner = vertex[end[0]][end[1]][end[2]];
      const double line[] = {Line(end[0], ref[0]), Line(end[1], ref[1]), Line(end[2], ref[2])};
      x = Sum(x, line[0] * line[1] * line[2], corner);
      jacobian[0] = Sum(jacobian[0], Slope(end[0]) * line[1] * line[2], corner);
      jacobian[1] = Sum(jacobian[1], line[0] * Slope(end[1]) * line[2], corner);
      jacobian[2] = Sum(jacobian[2], line[0] * line[1] * Slope(end[2]), corner);
    }
    const double det = Dot(jacobian[0], Cross(jacobian[1], jacobian[2]));
    Point& point = points.emplace_back();
    point.x = x;
    point.weight = std::abs(det) * kWeights[at[0]] * kWeights[at[1]] * kWeights[at[2]];
    for (int e = 0; e < 12; ++e) {
      // Functions are mapped by J^-T and curls by J / det. The columns of J^-T are cross products
      // of the columns of J, divided by det.
      const ReferenceEdge edge(e);
      const Vector normal = Cross(jacobian[(edge.d + 1) % 3], jacobian[(edge.d + 2) % 3]);
      point.function[e] = Sum({}, edge.Value(ref) / det, normal);
      const Vector curl = edge.Curl(ref);
      point.curl[e] = {};
      for (int d = 0; d < 3; ++d) {
        point.curl[e] = Sum(point.curl[e], curl[d] / det, jacobian[d]);
      }
    }
  }
  return points;
}

MaxwellTorus::ElementMatrix MaxwellTorus::MatrixOf(int64_t i, int64_t j) const {
  ElementMatrix matrix = {};
  for (const Point& point : PointsOf(i, j, 0)) {
    for (int e = 0; e < 12; ++e) {
      for (int f = 0; f < 12; ++f) {
        matrix[e][f] += point.weight * (Dot(point.curl[e], point.curl[f]) -
                                        omega_squared_ * Dot(point.function[e], point.function[f]));
      }
    }
  }
  return matrix;
}

Vector MaxwellTorus::FieldAt(const Vector& x) const {
  return {std::sin(kappa_ * x[1]), std::sin(kappa_ * x[2]), std::sin(kappa_ * x[0])};
}

std::vector<bool> MaxwellTorus::SurfaceEdges(std::vector<double>* integrals) const {
  std::vector<bool> on_surface(n());
  integrals->assign(n(), 0);
  for (int64_t k = 0; k < ring_; ++k) {
    for (int64_t j = 0; j <= side_; ++j) {
      for (int64_t i = 0; i <= side_; ++i) {
        const bool is_outer[] = {i == 0 || i == side_, j == 0 || j == side_};
        const bool exists[] = {i < side_, j < side_, true};
        const bool surface[] = {is_outer[1], is_outer[0], is_outer[0] || is_outer[1]};
        for (int d = 0; d < 3; ++d) {
          if (!exists[d] || !surface[d]) continue;
          const int64_t edge = EdgeAt(d, i, j, k);
          const Vector from = VertexAt(i, j, k);
          const Vector along = Sum(VertexAt(i + (d == 0), j + (d == 1), k + (d == 2)), -1, from);
          on_surface[edge] = true;
          for (int p = 0; p < 3; ++p) {
            (*integrals)[edge] += kWeights[p] * Dot(FieldAt(Sum(from, kNodes[p], along)), along);
          }
        }
      }
    }
  }
  return on_surface;
}

std::vector<SparseEntry> MaxwellTorus::Entries() const {
  std::vector<double> ignored;
  const std::vector<bool> on_surface = SurfaceEdges(&ignored);
  // The element matrices are invariant under rotation by one cell along the ring.
  std::vector<ElementMatrix> matrices;
  for (int64_t c = 0; c < side_ * side_; ++c) {
    matrices.push_back(MatrixOf(c % side_, c / side_));
  }
  std::vector<SparseEntry> entries;
  std::vector<std::vector<std::pair<int64_t, std::complex<double>>>> columns(per_slice());
  for (int64_t slice = 0; slice < ring_; ++slice) {
    for (auto& column : columns) column.clear();
    // The edges of a slice belong to the cells before and after it.
    for (const int64_t k : {(slice + ring_ - 1) % ring_, slice}) {
      for (int64_t c = 0; c < side_ * side_; ++c) {
        const std::array<int64_t, 12> edges = EdgesOf(c % side_, c / side_, k);
        for (int f = 0; f < 12; ++f) {
          const int64_t column = edges[f] - slice * per_slice();
          if (column < 0 || column >= per_slice()) continue;
          for (int e = 0; e < 12; ++e) columns[column].emplace_back(edges[e], matrices[c][e][f]);
        }
      }
    }
    for (int64_t f = 0; f < per_slice(); ++f) {
      auto& column = columns[f];
      std::stable_sort(column.begin(), column.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
      const int64_t at = slice * per_slice() + f;
      const size_t begin = entries.size();
      for (const auto& [row, value] : column) {
        const bool same = entries.size() > begin && entries.back().row == row;
        if (!same) entries.push_back({static_cast<int32_t>(row), static_cast<int32_t>(at), 0});
        if (!on_surface[row] && !on_surface[at]) entries.back().value += value;
        if (row == at && on_surface[at]) entries.back().value = 1;
      }
    }
  }
  return entries;
}

std::vector<std::complex<double>> MaxwellTorus::RightHandSide() const {
  std::vector<double> given;
  const std::vector<bool> on_surface = SurfaceEdges(&given);
  std::vector<std::complex<double>> b(n());
  const std::complex<double> factor = kappa_ * kappa_ - omega_squared_;
  for (int64_t c = 0; c < side_ * side_; ++c) {
    const ElementMatrix matrix = MatrixOf(c % side_, c / side_);
    for (int64_t k = 0; k < ring_; ++k) {
      const std::array<int64_t, 12> edges = EdgesOf(c % side_, c / side_, k);
      const std::vector<Point> points = PointsOf(c % side_, c / side_, k);
      for (int e = 0; e < 12; ++e) {
        for (const Point& point : points) {
          b[edges[e]] += point.weight * factor * Dot(FieldAt(point.x), point.function[e]);
        }
        for (int f = 0; f < 12; ++f) b[edges[e]] -= matrix[e][f] * given[edges[f]];
      }
    }
  }
  for (int64_t e = 0; e < n(); ++e) {
    if (on_surface[e]) b[e] = given[e];
  }
  return b;
}

double MaxwellTorus::ErrorOf(const std::vector<std::complex<double>>& x) const {
  double error = 0, norm = 0;
  for (int64_t c = 0; c < side_ * side_; ++c) {
    for (int64_t k = 0; k < ring_; ++k) {
      const std::array<int64_t, 12> edges = EdgesOf(c % side_, c / side_, k);
      for (const Point& point : PointsOf(c % side_, c / side_, k)) {
        const Vector exact = FieldAt(point.x);
        norm += point.weight * Dot(exact, exact);
        for (int d = 0; d < 3; ++d) {
          std::complex<double> field = -exact[d];
          for (int e = 0; e < 12; ++e) field += x[edges[e]] * point.function[e][d];
          error += point.weight * std::norm(field);
        }
      }
    }
  }
  return std::sqrt(error / norm);
}

}  // namespace crout::testing
