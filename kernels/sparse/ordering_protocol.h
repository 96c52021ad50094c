// What the product and its program crout-order say to each other, on the program's standard input
// and output: n, the number of neighbours, Graph::start and Graph::neighbour, all int32; then the
// order, n int32. No answer: it failed.
#ifndef CROUT_KERNELS_SPARSE_ORDERING_PROTOCOL_H_
#define CROUT_KERNELS_SPARSE_ORDERING_PROTOCOL_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace crout {

inline constexpr char kOrderingProgram[] = "crout-order";

// METIS's own arrays have up to four times the vertices, and twice the neighbours.
constexpr bool FitsOrderingProgram(int64_t n, int64_t neighbours) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 4;
  return n >= 0 && neighbours >= 0 && n < kMost && neighbours < kMost;
}

// Memory that the program takes for such a graph, its forks together; it may have no more. METIS
// keeps the graph and every coarser one, of half the vertices each, and of two numbers for each
// neighbour. Where the graph is random, none of these gets fewer until all pairs of vertices are
// neighbours: those of n vertices and z neighbours are after log2(n / sqrt(z)) halvings. Of parts
// of a graph the sum is no larger.
inline size_t OrderingProgramBytes(int64_t n, int64_t neighbours) {
  constexpr double kOfVertex = 128;
  constexpr double kOfNeighbour = 24;  // The graph, a part's copy, and those after the last level.
  constexpr double kOfLevel = 8;
  const auto z = static_cast<double>(std::max<int64_t>(neighbours, 1));
  const double levels = std::max(0.0, std::log2(static_cast<double>(n) / std::sqrt(z)));
  return static_cast<size_t>(static_cast<double>(n) * kOfVertex +
                             z * (kOfNeighbour + kOfLevel * levels));
}

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_ORDERING_PROTOCOL_H_
