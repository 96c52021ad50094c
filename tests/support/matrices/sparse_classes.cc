// SPDX-License-Identifier: Apache-2.0

#include "tests/support/matrices/sparse_classes.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace crout::testing {
namespace {

// Random numbers. Uses only the generator of the standard library, because its distributions differ
// between implementations.
class Draw {
 public:
  explicit Draw(uint64_t seed) : bits_(seed) {}

  double Unit() { return static_cast<double>(bits_() >> 11) * 0x1p-53; }  // [0, 1)
  double Signed() { return 2 * Unit() - 1; }
  int64_t Below(int64_t n) { return static_cast<int64_t>(Unit() * static_cast<double>(n)); }
  double Normal() {
    constexpr double kTwoPi = 6.283185307179586;
    return std::sqrt(-2 * std::log(1 - Unit())) * std::cos(kTwoPi * Unit());
  }

 private:
  std::mt19937_64 bits_;
};

class Entries {
 public:
  void Add(int64_t row, int64_t column, double value) {
    entries_.push_back({static_cast<int32_t>(row), static_cast<int32_t>(column), value});
  }
  // Adds a conductance between two unknowns.
  void Connect(int64_t i, int64_t j, double value) {
    Add(i, i, value);
    Add(j, j, value);
    Add(i, j, -value);
    Add(j, i, -value);
  }
  // Adds `value` at (i, j) and (j, i).
  void AddBoth(int64_t i, int64_t j, double value) {
    Add(i, j, value);
    Add(j, i, value);
  }
  SparseProblem Problem(int64_t n) && { return {std::move(entries_), n}; }

 private:
  std::vector<SparseEntry> entries_;
};

// Calls visit(k, l) for each pair of neighbours k < l in a grid of m^dimensions points.
template <class Visit>
void ForNeighbours(int64_t m, int dimensions, const Visit& visit) {
  int64_t n = 1;
  for (int d = 0; d < dimensions; ++d) n *= m;
  for (int64_t k = 0; k < n; ++k) {
    int64_t stride = 1;
    for (int d = 0; d < dimensions; ++d, stride *= m) {
      if (k / stride % m + 1 < m) visit(k, k + stride);
    }
  }
}

void AddBlock(int64_t i, int64_t j, double diagonal, Draw& draw, Entries& entries) {
  constexpr int64_t kSide = 4;
  for (int64_t r = 0; r < kSide; ++r) {
    for (int64_t c = 0; c < kSide; ++c) {
      entries.Add(i * kSide + r, j * kSide + c, 0.2 * draw.Signed() + (r == c ? diagonal : 0));
    }
  }
}

}  // namespace

SparseProblem Laplacian(int64_t m, int dimensions, double wave2) {
  Entries entries;
  int64_t n = 1;
  for (int d = 0; d < dimensions; ++d) n *= m;
  for (int64_t k = 0; k < n; ++k) entries.Add(k, k, 2.0 * dimensions - wave2);
  ForNeighbours(m, dimensions, [&](int64_t k, int64_t l) { entries.AddBoth(k, l, -1); });
  return std::move(entries).Problem(n);
}

SparseProblem Banded(int64_t n, int64_t p) {
  Draw draw(1);
  Entries entries;
  for (int64_t k = 0; k < n; ++k) {
    entries.Add(k, k, 8 + draw.Normal());
    for (int64_t l = k + 1; l <= std::min(n - 1, k + p); ++l) {
      entries.Add(k, l, draw.Normal());
      entries.Add(l, k, draw.Normal());
    }
  }
  return std::move(entries).Problem(n);
}

SparseProblem Arrow(int64_t n) {
  Draw draw(2);
  Entries entries;
  for (int64_t k = 0; k + 1 < n; ++k) {
    entries.Add(k, k, 2 + draw.Unit());
    entries.Add(k, n - 1, draw.Signed());
    entries.Add(n - 1, k, draw.Signed());
  }
  entries.Add(n - 1, n - 1, 4);
  return std::move(entries).Problem(n);
}

SparseProblem Circuit(int64_t n) {
  Draw draw(3);
  Entries entries;
  const int64_t sources = n / 50;
  const int64_t nodes = n - sources;
  const auto conductance = [&draw] { return std::pow(10.0, 8 * draw.Unit() - 4); };
  for (int64_t k = 0; k < nodes; ++k) {
    entries.Add(k, k, 1e-4);
    if (k > 0) entries.Connect(k, k - 1 - draw.Below(std::min<int64_t>(k, 8)), conductance());
    if (draw.Unit() < 0.5 && k > 0) {
      entries.Connect(k, k - 1 - draw.Below(std::min<int64_t>(k, 50)), conductance());
    }
    if (draw.Unit() < 0.01) entries.Connect(k, (k + 1 + draw.Below(nodes - 1)) % nodes, 1e-3);
    if (draw.Unit() < 0.1) {
      entries.Add(k, std::max<int64_t>(0, k - draw.Below(20)), 0.1 * draw.Signed());
    }
  }
  for (int64_t s = 0; s < sources; ++s) entries.AddBoth(nodes + s, s * (nodes / sources), 1);
  return std::move(entries).Problem(n);
}

SparseProblem PowerGrid(int64_t buses) {
  Draw draw(4);
  Entries entries;
  const auto connect = [&](int64_t i, int64_t j) {
    const double b = 1 + 20 * draw.Unit();
    const double g = 0.2 * b * draw.Unit();
    for (const auto& [from, to] : {std::pair(i, j), std::pair(j, i)}) {
      const double shift = 0.05 * draw.Signed();
      entries.Add(2 * from, 2 * to, -b - shift);
      entries.Add(2 * from, 2 * to + 1, -g);
      entries.Add(2 * from + 1, 2 * to, g);
      entries.Add(2 * from + 1, 2 * to + 1, -b + shift);
      entries.Add(2 * from, 2 * from, b);
      entries.Add(2 * from, 2 * from + 1, g);
      entries.Add(2 * from + 1, 2 * from, -g);
      entries.Add(2 * from + 1, 2 * from + 1, b);
    }
  };
  for (int64_t k = 0; k < buses; ++k) {
    entries.Add(2 * k, 2 * k, 0.1);
    entries.Add(2 * k + 1, 2 * k + 1, 0.1);
    if (k > 0) connect(k, k - 1 - draw.Below(std::min<int64_t>(k, 6)));
    if (k > 100 && draw.Unit() < 0.3) connect(k, k - 1 - draw.Below(100));
  }
  return std::move(entries).Problem(2 * buses);
}

SparseProblem Kkt(int64_t n) {
  Draw draw(5);
  Entries entries;
  const int64_t constraints = n / 4;
  for (int64_t k = 0; k < n; ++k) {
    entries.Add(k, k, 2 + draw.Unit());
    if (k > 0) entries.AddBoth(k, k - 1 - draw.Below(std::min<int64_t>(k, 10)), draw.Signed());
  }
  for (int64_t c = 0; c < constraints; ++c) {
    entries.AddBoth(n + c, 4 * c, 1 + draw.Unit());
    for (int other = 0; other < 3; ++other) {
      entries.AddBoth(n + c, (4 * c + draw.Below(60)) % n, draw.Signed());
    }
  }
  return std::move(entries).Problem(n + constraints);
}

SparseProblem Stokes(int64_t m) {
  Entries entries;
  // The unknowns are the horizontal velocities on (m - 1) m inner faces, the vertical velocities on
  // m (m - 1), and the pressures in the cells.
  const int64_t faces = (m - 1) * m;
  const auto across = [m](int64_t x, int64_t y) { return y * (m - 1) + x; };
  const auto up = [m, faces](int64_t x, int64_t y) { return faces + y * m + x; };
  const auto pressure = [m, faces](int64_t x, int64_t y) { return 2 * faces + y * m + x; };
  for (int64_t k = 0; k < 2 * faces; ++k) entries.Add(k, k, 4);
  for (int64_t a = 0; a < m; ++a) {
    for (int64_t b = 0; b + 1 < m; ++b) {
      if (b + 2 < m) entries.AddBoth(across(b, a), across(b + 1, a), -1);
      if (a + 1 < m) entries.AddBoth(across(b, a), across(b, a + 1), -1);
      if (b + 2 < m) entries.AddBoth(up(a, b), up(a, b + 1), -1);
      if (a + 1 < m) entries.AddBoth(up(a, b), up(a + 1, b), -1);
      entries.AddBoth(across(b, a), pressure(b, a), 1);
      entries.AddBoth(across(b, a), pressure(b + 1, a), -1);
      entries.AddBoth(up(a, b), pressure(a, b), 1);
      entries.AddBoth(up(a, b), pressure(a, b + 1), -1);
    }
  }
  entries.Add(pressure(0, 0), pressure(0, 0), 1);
  return std::move(entries).Problem(2 * faces + m * m);
}

SparseProblem Blocks(int64_t m) {
  Draw draw(6);
  Entries entries;
  for (int64_t k = 0; k < m * m; ++k) AddBlock(k, k, 4, draw, entries);
  ForNeighbours(m, 2, [&](int64_t k, int64_t l) {
    AddBlock(k, l, -1, draw, entries);
    AddBlock(l, k, -1, draw, entries);
  });
  return std::move(entries).Problem(4 * m * m);
}

SparseProblem Scattered(int64_t n) {
  Draw draw(7);
  Entries entries;
  for (int64_t k = 0; k < n; ++k) {
    entries.Add(k, k, 3);
    for (int other = 0; other < 3; ++other) entries.Add(k, draw.Below(n), draw.Signed());
  }
  return std::move(entries).Problem(n);
}

}  // namespace crout::testing
