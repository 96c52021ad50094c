// Approximate minimum degree ordering.
#ifndef CROUT_KERNELS_SPARSE_MINIMUM_DEGREE_H_
#define CROUT_KERNELS_SPARSE_MINIMUM_DEGREE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "kernels/sparse/graph.h"

namespace crout {

// Neighbours, and eight times as many as vertices, that AMD orders with 32-bit indices: its own
// arrays have 1.2 times the neighbours and six times the vertices.
inline constexpr int64_t kMostFor32Bits = std::numeric_limits<int32_t>::max() / 4;

// order[k] is the vertex that is eliminated as number k: AMD's (Amestoy, Davis and Duff), with
// 64-bit indices for graphs of `most` neighbours or more. The order is the same. It cannot be
// stopped: only for graphs of little work (ShortMinimumDegree), or in a process of its own.
std::vector<int32_t> OrderByMinimumDegree(const Graph& graph, int64_t most = kMostFor32Bits);

// The order of a forest by minimum degree: leaves first, without fill. Empty for a graph that has a
// cycle. Takes time in proportion to the edges.
std::optional<std::vector<int32_t>> OrderForest(const Graph& graph);

// Whether AMD orders such a graph in a fraction of a second, whatever its structure. The bound is a
// product: rows that are nearly dense make it look at most of their lists for each of the others.
// Measured on graphs with as many hubs of degree 9 sqrt(n) as took longest: 1e-9 s for each unit.
constexpr bool ShortMinimumDegree(int64_t n, int64_t neighbours) {
  constexpr double kMostWork = 2.5e8;
  return static_cast<double>(n) * static_cast<double>(neighbours) <= kMostWork;
}

// Memory that it takes beside the graph: for the lists, and for each vertex.
size_t MinimumDegreeBytes(int64_t n, int64_t neighbours);
size_t MinimumDegreeVertexBytes(int64_t n);

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_MINIMUM_DEGREE_H_
