#include "kernels/sparse/graph.h"

#include <algorithm>

namespace crout {
namespace {

// The arrays of a matrix that do not depend on its type.
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

Graph SymmetrizedGraph(const AnySparse& a, const int32_t* column_of_row) {
  const Pattern pattern(a);
  std::vector<int32_t> row_of_column;
  if (column_of_row != nullptr) {
    row_of_column.resize(a.n);
    for (int64_t i = 0; i < a.n; ++i) row_of_column[column_of_row[i]] = static_cast<int32_t>(i);
  }
  std::vector<int32_t> last_seen_by(a.n, -1);
  // visit(w) for each neighbour of v, in no order.
  const auto for_neighbours = [&](int32_t v, const auto& visit) {
    last_seen_by[v] = v;
    const auto see = [&](int32_t w) {
      if (last_seen_by[w] == v) return;
      last_seen_by[w] = v;
      visit(w);
    };
    const int32_t j = column_of_row != nullptr ? column_of_row[v] : v;
    for (int64_t e = pattern.column_start[j]; e < pattern.column_start[j + 1]; ++e) {
      see(pattern.row[e]);
    }
    for (int64_t e = pattern.row_start[v]; e < pattern.row_start[v + 1]; ++e) {
      see(row_of_column.empty() ? pattern.column[e] : row_of_column[pattern.column[e]]);
    }
  };
  Graph graph;
  graph.start.resize(a.n + 1);
  for (int32_t v = 0; v < a.n; ++v) {
    int64_t degree = 0;
    for_neighbours(v, [&](int32_t) { ++degree; });
    graph.start[v + 1] = graph.start[v] + degree;
  }
  graph.neighbour.resize(graph.start[a.n]);
  std::fill(last_seen_by.begin(), last_seen_by.end(), -1);
  // Every list is appended to by ascending v, its own neighbours: so it ascends.
  std::vector<int64_t> next(graph.start.begin(), graph.start.end() - 1);
  for (int32_t v = 0; v < a.n; ++v) {
    for_neighbours(v, [&](int32_t w) { graph.neighbour[next[w]++] = v; });
  }
  return graph;
}

}  // namespace crout
