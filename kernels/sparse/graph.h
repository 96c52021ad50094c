// SPDX-License-Identifier: Apache-2.0

// Graph of a sparse matrix whose pattern is treated as symmetric.
#ifndef CROUT_KERNELS_SPARSE_GRAPH_H_
#define CROUT_KERNELS_SPARSE_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/sparse_view.h"
#include "kernels/stop_requested.h"

namespace crout {

// Undirected graph with vertices 0 to n - 1. The neighbors of v, without v itself, are
// neighbour[start[v], start[v + 1]), ascending.
struct Graph {
  std::vector<int64_t> start;  // n + 1
  std::vector<int32_t> neighbour;

  int64_t vertices() const { return static_cast<int64_t>(start.size()) - 1; }
  std::span<const int32_t> neighbours(int32_t v) const {
    return std::span(neighbour).subspan(start[v], start[v + 1] - start[v]);
  }
  size_t neighbour_bytes() const { return neighbour.size() * sizeof(int32_t); }
};

// Upper bound on the size of Graph::neighbour, in bytes, for a matrix with this many entries. A
// symmetric pattern needs half of it.
inline size_t MaxNeighbourBytes(int64_t nonzeros) {
  return 2 * static_cast<size_t>(nonzeros) * sizeof(int32_t);
}

// Returns the graph of A Q, where column i of A Q is column column_of_row[i] of A; the graph of A
// if column_of_row is null. Vertex i is row i and column i. Every entry is an edge, whatever its
// value. CANCELLED if `stop` returns true; it is called often.
absl::StatusOr<Graph> SymmetrizedGraph(const AnySparse& a, const int32_t* column_of_row,
                                       StopRequested stop);

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_GRAPH_H_
