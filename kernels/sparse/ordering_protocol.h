// The messages between the product and its program crout-order, on the program's standard input
// and output. Request: method, n and the number of neighbours, then Graph::start, all int64, then
// Graph::neighbour, int32. Answer: the order, n int32. A program that fails answers nothing.
#ifndef CROUT_KERNELS_SPARSE_ORDERING_PROTOCOL_H_
#define CROUT_KERNELS_SPARSE_ORDERING_PROTOCOL_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/sparse/minimum_degree.h"

namespace crout {

inline constexpr char kOrderingProgram[] = "crout-order";

// AMD and METIS.
enum class OrderingMethod : int64_t { kMinimumDegree, kNestedDissection };

// Whether the program orders such a graph. METIS's own arrays have up to four times the vertices,
// and twice the neighbours, of 32-bit indices; AMD has 64-bit ones, too.
constexpr bool FitsOrderingProgram(OrderingMethod method, int64_t n, int64_t neighbours) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (n < 0 || neighbours < 0 || n >= kMost) return false;
  if (method == OrderingMethod::kMinimumDegree) return neighbours <= 2 * kMost;
  return method == OrderingMethod::kNestedDissection && n < kMost / 4 && neighbours < kMost / 4;
}

// METIS keeps the graph and every coarser one, of half the vertices each, and of two numbers for
// each neighbour. Where the graph is random, none of these gets fewer until all pairs of vertices
// are neighbours: those of n vertices and z neighbours are after log2(n / sqrt(z)) halvings. The
// sum over parts of a graph is no larger.
//
// The heap of the program grows by whole pieces: kHeapPieces is for graphs that need less than one.
inline size_t NestedDissectionBytes(int64_t n, int64_t neighbours) {
  constexpr double kHeapPieces = 1 << 19;
  constexpr double kOfVertex = 128;
  constexpr double kOfNeighbour = 24;  // The graph, a part's copy, and those after the last level.
  constexpr double kOfLevel = 8;
  const auto z = static_cast<double>(std::max<int64_t>(neighbours, 1));
  const double levels = std::max(0.0, std::log2(static_cast<double>(n) / std::sqrt(z)));
  return static_cast<size_t>(kHeapPieces + static_cast<double>(n) * kOfVertex +
                             z * (kOfNeighbour + kOfLevel * levels));
}

// Memory that the program takes for such a graph, its forks together; it may have no more.
inline size_t OrderingProgramBytes(OrderingMethod method, int64_t n, int64_t neighbours) {
  if (method == OrderingMethod::kNestedDissection) return NestedDissectionBytes(n, neighbours);
  constexpr size_t kRounding = size_t{1} << 18;  // of arrays to pages
  const size_t graph = static_cast<size_t>(n + 1) * sizeof(int64_t) +
                       static_cast<size_t>(neighbours) * sizeof(int32_t);
  return graph + MinimumDegreeBytes(n, neighbours) + MinimumDegreeVertexBytes(n) + kRounding;
}

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_ORDERING_PROTOCOL_H_
