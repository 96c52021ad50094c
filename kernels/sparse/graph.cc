// SPDX-License-Identifier: Apache-2.0

#include "kernels/sparse/graph.h"

#include <algorithm>
#include <span>

#include "kernels/stop_requested.h"

namespace crout {
namespace {

// Arrays of a matrix that do not depend on its type.
struct Pattern {
  explicit Pattern(const AnySparse& a) {
    const SparseLayout at(a.n, a.nonzeros, a.dtype);
    column_start = reinterpret_cast<const int64_t*>(a.data + at.column_start);
    row_start = reinterpret_cast<const int64_t*>(a.data + at.row_start);
    row = reinterpret_cast<const int32_t*>(a.data + at.row);
    column = reinterpret_cast<const int32_t*>(a.data + at.column);
  }

  const int64_t* column_start;
  const int64_t* row_start;
  const int32_t* row;
  const int32_t* column;
};

}  // namespace

absl::StatusOr<Graph> SymmetrizedGraph(const AnySparse& a, const int32_t* column_of_row,
                                       StopRequested stop) {
  const Pattern pattern(a);
  std::vector<int32_t> row_of_column;
  if (column_of_row != nullptr) {
    row_of_column.resize(a.n);
    for (int64_t i = 0; i < a.n; ++i) row_of_column[column_of_row[i]] = static_cast<int32_t>(i);
  }
  std::vector<int32_t> moved;
  // Calls visit(w) for each neighbor w of v, ascending: the union of v's row and column.
  const auto for_neighbours = [&](int32_t v, const auto& visit) {
    const int32_t j = column_of_row != nullptr ? column_of_row[v] : v;
    std::span<const int32_t> in_column(pattern.row + pattern.column_start[j],
                                       pattern.row + pattern.column_start[j + 1]);
    std::span<const int32_t> in_row(pattern.column + pattern.row_start[v],
                                    pattern.column + pattern.row_start[v + 1]);
    if (column_of_row != nullptr) {
      moved.assign(in_row.begin(), in_row.end());
      for (int32_t& w : moved) w = row_of_column[w];
      std::sort(moved.begin(), moved.end());
      in_row = moved;
    }
    auto p = in_column.begin();
    auto q = in_row.begin();
    while (p != in_column.end() || q != in_row.end()) {
      const bool from_column = q == in_row.end() || (p != in_column.end() && *p <= *q);
      const int32_t w = from_column ? *p : *q;
      if (p != in_column.end() && *p == w) ++p;
      if (q != in_row.end() && *q == w) ++q;
      if (w != v) visit(w);
    }
  };
  Graph graph;
  StopCounter counter(stop);
  graph.start.resize(a.n + 1);
  for (int32_t v = 0; v < a.n; ++v) {
    if (counter.Stops(1 + graph.start[v] - graph.start[std::max(0, v - 1)])) {
      return counter.status();
    }
    int64_t degree = 0;
    for_neighbours(v, [&](int32_t) { ++degree; });
    graph.start[v + 1] = graph.start[v] + degree;
  }
  graph.neighbour.resize(graph.start[a.n]);
  int32_t* next = graph.neighbour.data();
  for (int32_t v = 0; v < a.n; ++v) {
    if (counter.Stops(1 + graph.start[v + 1] - graph.start[v])) return counter.status();
    for_neighbours(v, [&](int32_t w) { *next++ = w; });
  }
  return graph;
}

}  // namespace crout
