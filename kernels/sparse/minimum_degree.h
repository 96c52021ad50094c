// Approximate minimum degree ordering.
#ifndef CROUT_KERNELS_SPARSE_MINIMUM_DEGREE_H_
#define CROUT_KERNELS_SPARSE_MINIMUM_DEGREE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/sparse/graph.h"

namespace crout {

// Neighbours, and eight times as many as vertices, that AMD orders with 32-bit indices: its own
// arrays have 1.2 times the neighbours and six times the vertices.
inline constexpr int64_t kMostFor32Bits = std::numeric_limits<int32_t>::max() / 4;

// order[k] is the vertex that is eliminated as number k: AMD's (Amestoy, Davis and Duff), with
// 64-bit indices for graphs of `most` neighbours or more. The order is the same.
std::vector<int32_t> OrderByMinimumDegree(const Graph& graph, int64_t most = kMostFor32Bits);

// What it takes beside the graph, and a few numbers for each vertex.
size_t MinimumDegreeBytes(const Graph& graph);

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_MINIMUM_DEGREE_H_
