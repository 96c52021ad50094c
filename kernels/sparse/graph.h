// The graph of a sparse matrix whose pattern is taken as symmetric.
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

// Vertices 0 to n - 1. The neighbours of v are neighbour[start[v], start[v + 1]), ascending, v not
// among them; w is one of v's where v is one of w's.
struct Graph {
  std::vector<int64_t> start;  // n + 1
  std::vector<int32_t> neighbour;

  int64_t vertices() const { return static_cast<int64_t>(start.size()) - 1; }
  std::span<const int32_t> neighbours(int32_t v) const {
    return std::span(neighbour).subspan(start[v], start[v + 1] - start[v]);
  }
  size_t neighbour_bytes() const { return neighbour.size() * sizeof(int32_t); }
};

// Of the graph of a matrix with so many entries: a symmetric pattern has half of it.
inline size_t MostNeighbourBytes(int64_t nonzeros) {
  return 2 * static_cast<size_t>(nonzeros) * sizeof(int32_t);
}

// Of A Q, where column column_of_row[i] of A is column i of A Q; null: of A itself. Row i and
// column i of that are vertex i, and every entry is an edge, whatever its value. CANCELLED by
// `stop`, which is asked often.
absl::StatusOr<Graph> SymmetrizedGraph(const AnySparse& a, const int32_t* column_of_row,
                                       StopRequested stop);

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_GRAPH_H_
