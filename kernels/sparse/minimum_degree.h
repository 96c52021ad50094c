// SPDX-License-Identifier: Apache-2.0

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

// Limit on the neighbors, and on eight times the vertices, that AMD orders with 32-bit indices. Its
// own arrays have 1.2 times the neighbors plus six times the vertices.
inline constexpr int64_t kMaxFor32Bits = std::numeric_limits<int32_t>::max() / 4;

// Returns AMD's order (Amestoy, Davis and Duff): order[k] is the k-th eliminated vertex. Uses
// 64-bit indices for graphs with `most` or more neighbors; the order is the same. Cannot be
// stopped: call it only for graphs of little work (IsMinimumDegreeFast) or in a separate process.
std::vector<int32_t> OrderByMinimumDegree(const Graph& graph, int64_t most = kMaxFor32Bits);

// Returns a minimum degree order of a forest: leaves first, without fill-in. Empty if the graph has
// a cycle. Takes time proportional to the number of edges.
std::optional<std::vector<int32_t>> OrderForest(const Graph& graph);

// True if AMD orders a graph of this size, of any structure, in a fraction of a second. The bound
// is a product because nearly dense rows make AMD scan most of their lists for each other row.
// Worst case measured: 1e-9 s per unit, for graphs with hubs of degree 9 sqrt(n), with the number
// of hubs that took longest.
constexpr bool IsMinimumDegreeFast(int64_t n, int64_t neighbours) {
  constexpr double kMaxWork = 2.5e8;
  return static_cast<double>(n) * static_cast<double>(neighbours) <= kMaxWork;
}

// Memory, in bytes, that AMD needs in addition to the graph: for its lists, and for arrays per
// vertex.
size_t MinimumDegreeBytes(int64_t n, int64_t neighbours);
size_t MinimumDegreeVertexBytes(int64_t n);

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_MINIMUM_DEGREE_H_
