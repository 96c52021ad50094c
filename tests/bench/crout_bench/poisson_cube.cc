// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/crout_bench/poisson_cube.h"

#include <cblas.h>

#include <algorithm>
#include <array>

#include "kernels/host/ops/lapack.h"

namespace crout::bench {
namespace {

constexpr int kAxes = 3;

struct Node {
  std::array<int64_t, kAxes> at;
};

// The nodes of a subdomain. Each axis has m + 1 nodes.
class Subdomain {
 public:
  Subdomain(int64_t m, const CubePlace& place) : m_(m) {
    // The first `shared_sides` of these sides are shared.
    constexpr std::array<std::array<int, 2>, 6> kShared{
        {{0, 1}, {1, 1}, {2, 1}, {0, 0}, {1, 0}, {2, 0}}};
    for (int side = 0; side < place.shared_sides; ++side) {
      shared_[kShared[side][0]][kShared[side][1]] = true;
    }
  }

  int64_t m() const { return m_; }
  int64_t count() const { return (m_ + 1) * (m_ + 1) * (m_ + 1); }
  Node node(int64_t number) const {
    const int64_t side = m_ + 1;
    return {{number % side, number / side % side, number / side / side}};
  }
  int64_t number(const Node& node) const {
    return node.at[0] + (m_ + 1) * (node.at[1] + (m_ + 1) * node.at[2]);
  }

  bool IsShared(const Node& node) const { return OnSides(node, true); }
  bool IsFixed(const Node& node) const { return OnSides(node, false); }

  // Returns the shared nodes of each constraint: corners by number, then edges, then faces. Edges
  // and faces are sorted by their places along x, y and z, in descending order: range, high end,
  // low end.
  std::vector<std::vector<Node>> Constraints() const {
    std::vector<std::vector<Node>> constraints;
    for (const int ranges : {0, 1, 2}) {
      std::vector<std::array<int, kAxes>> places;  // 0: low end, 1: high end, 2: range
      for (int code = 0; code < 27; ++code) {
        const std::array<int, kAxes> ends{code / 9, code / 3 % 3, code % 3};
        if (std::count(ends.begin(), ends.end(), 2) == ranges) places.push_back(ends);
      }
      if (ranges == 0) {
        std::sort(places.begin(), places.end(), [](const auto& a, const auto& b) {
          return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
        });
      } else {
        std::sort(places.rbegin(), places.rend());
      }
      for (const auto& ends : places) {
        std::vector<Node> nodes = NodesOf(ends);
        const bool wanted = IsShared(nodes[0]) && (ranges == 0 || !IsFixed(nodes[0]));
        if (wanted) constraints.push_back(std::move(nodes));
      }
    }
    return constraints;
  }

 private:
  bool OnSides(const Node& node, bool shared) const {
    for (int axis = 0; axis < kAxes; ++axis) {
      if (node.at[axis] == 0 && shared_[axis][0] == shared) return true;
      if (node.at[axis] == m_ && shared_[axis][1] == shared) return true;
    }
    return false;
  }

  std::vector<Node> NodesOf(const std::array<int, kAxes>& ends) const {
    std::array<int64_t, kAxes> from;
    std::array<int64_t, kAxes> to;
    for (int axis = 0; axis < kAxes; ++axis) {
      from[axis] = ends[axis] == 2 ? 1 : ends[axis] * m_;
      to[axis] = ends[axis] == 2 ? m_ - 1 : from[axis];
    }
    std::vector<Node> nodes;
    for (int64_t z = from[2]; z <= to[2]; ++z) {
      for (int64_t y = from[1]; y <= to[1]; ++y) {
        for (int64_t x = from[0]; x <= to[0]; ++x) nodes.push_back({{x, y, z}});
      }
    }
    return nodes;
  }

  const int64_t m_;
  std::array<std::array<bool, 2>, kAxes> shared_{};
};

// Eliminates the unknowns that are not shared, plane by plane along z. The remaining neighbors of a
// plane's unknowns are those of the next plane and the shared unknowns.
class Condensation {
 public:
  Condensation(const Subdomain& subdomain, double h)
      : subdomain_(subdomain),
        h_(h),
        plane_((subdomain.m() + 1) * (subdomain.m() + 1)),
        place_(subdomain.count()) {
    std::vector<int64_t> in_plane(subdomain.m() + 1, 0);
    for (int64_t k = 0; k < subdomain.count(); ++k) {
      const Node node = subdomain.node(k);
      if (subdomain.IsShared(node)) shared_nodes_.push_back(k);
    }
    order_ = shared() + 2 * plane_;
    dense_.assign(order_ * order_, 0.0);
    int64_t next_shared = plane_;
    for (int64_t k = 0; k < subdomain.count(); ++k) {
      const Node node = subdomain.node(k);
      const int64_t z = node.at[2];
      if (subdomain.IsShared(node)) {
        place_[k] = next_shared++;
      } else {
        place_[k] = BeginOf(z) + in_plane[z]++;
      }
    }
    for (int64_t z = 0; z <= subdomain.m(); ++z) {
      if (z < subdomain.m()) AddElements(z);
      Eliminate(BeginOf(z), in_plane[z], z % 2 == 0 ? plane_ : 0);
    }
  }

  int64_t shared() const { return static_cast<int64_t>(shared_nodes_.size()); }
  const std::vector<int64_t>& shared_nodes() const { return shared_nodes_; }
  double complement(int64_t i, int64_t j) const {
    return dense_[plane_ + i + (plane_ + j) * order_];
  }

 private:
  // Even planes are before the shared unknowns, odd planes after them.
  int64_t BeginOf(int64_t z) const { return z % 2 == 0 ? 0 : plane_ + shared(); }

  // Adds the finite elements between the planes z and z + 1. Nodes on the boundary have only a
  // diagonal entry.
  void AddElements(int64_t z) {
    const int64_t m = subdomain_.m();
    for (int64_t y = 0; y < m; ++y) {
      for (int64_t x = 0; x < m; ++x) {
        for (int a = 0; a < 8; ++a) {
          for (int b = 0; b < 8; ++b) AddEntry({{x, y, z}}, a, b);
        }
      }
    }
  }

  void AddEntry(const Node& element, int a, int b) {
    const int apart = CountOnes(a ^ b);
    constexpr std::array<double, 4> kStiffness{1.0 / 3, 0, -1.0 / 12, -1.0 / 12};
    const Node from = Corner(element, a);
    const Node to = Corner(element, b);
    if (a != b && (subdomain_.IsFixed(from) || subdomain_.IsFixed(to))) return;
    dense_[place_[subdomain_.number(from)] + place_[subdomain_.number(to)] * order_] +=
        h_ * kStiffness[apart];
  }

  static int CountOnes(int bits) { return (bits & 1) + (bits >> 1 & 1) + (bits >> 2 & 1); }
  static Node Corner(const Node& element, int corner) {
    return {{element.at[0] + (corner & 1), element.at[1] + (corner >> 1 & 1),
             element.at[2] + (corner >> 2 & 1)}};
  }

  // Eliminates the unknowns [begin, begin + count), and updates [rest, rest + shared + plane).
  void Eliminate(int64_t begin, int64_t count, int64_t rest) {
    if (count == 0) return;
    const int64_t others = shared() + plane_;
    double* const block = &dense_[begin + begin * order_];
    double* const row = &dense_[begin + rest * order_];
    LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'L', count, block, order_);
    cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, count, others, 1,
                block, order_, row, order_);
    cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, others, others, count, -1, row, order_,
                row, order_, 1, &dense_[rest + rest * order_], order_);
    for (int64_t k = begin; k < begin + plane_; ++k) {
      std::fill_n(&dense_[k * order_], order_, 0.0);
      for (int64_t j = 0; j < order_; ++j) dense_[k + j * order_] = 0;
    }
  }

  const Subdomain& subdomain_;
  const double h_;
  const int64_t plane_;
  std::vector<int64_t> place_;  // position of each node in `dense_`
  std::vector<int64_t> shared_nodes_;
  int64_t order_ = 0;
  std::vector<double> dense_;
};

}  // namespace

int64_t PoissonCubeConstraints(const CubePlace& place) {
  return static_cast<int64_t>(Subdomain(2, place).Constraints().size());
}

int64_t PoissonCubeOrder(int64_t elements, const CubePlace& place) {
  const Subdomain subdomain(elements, place);
  int64_t shared = 0;
  for (int64_t k = 0; k < subdomain.count(); ++k) {
    shared += subdomain.IsShared(subdomain.node(k)) ? 1 : 0;
  }
  return shared + PoissonCubeConstraints(place);
}

LocalProblem MakePoissonCube(int64_t elements, const CubePlace& place) {
  const Subdomain subdomain(elements, place);
  const double h = 1.0 / static_cast<double>(place.subdomains * elements);
  const Condensation condensed(subdomain, h);
  const auto constraints = subdomain.Constraints();
  const int64_t shared = condensed.shared();
  LocalProblem local;
  local.n = shared + static_cast<int64_t>(constraints.size());
  local.values.assign(local.n * local.n, 0.0);
  for (int64_t j = 0; j < shared; ++j) {
    for (int64_t i = 0; i < shared; ++i) {
      local.values[i + j * local.n] = condensed.complement(i, j);
    }
  }
  std::vector<int64_t> row(subdomain.count(), -1);
  for (int64_t i = 0; i < shared; ++i) row[condensed.shared_nodes()[i]] = i;
  for (size_t c = 0; c < constraints.size(); ++c) {
    const int64_t last = shared + static_cast<int64_t>(c);
    for (const Node& node : constraints[c]) {
      const int64_t i = row[subdomain.number(node)];
      local.values[i + last * local.n] = local.values[last + i * local.n] = 1;
    }
  }
  return local;
}

}  // namespace crout::bench
