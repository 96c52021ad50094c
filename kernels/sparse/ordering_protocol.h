// SPDX-License-Identifier: Apache-2.0

// Messages between the server and its helper program crout-order, on the program's standard input
// and output. Request: method, n, number of neighbors and Graph::start as int64, then
// Graph::neighbour as int32. Reply: the order as n int32. A program that fails sends no reply.
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

// AMD or METIS.
enum class OrderingMethod : int64_t { kMinimumDegree, kNestedDissection };

// True if the program can order a graph of this size. METIS's own arrays hold up to four times the
// vertices and twice the neighbors in 32-bit indices. AMD also has 64-bit indices.
constexpr bool FitsOrderingProgram(OrderingMethod method, int64_t n, int64_t neighbours) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (n < 0 || neighbours < 0 || n >= kMax) return false;
  if (method == OrderingMethod::kMinimumDegree) return neighbours <= 2 * kMax;
  return method == OrderingMethod::kNestedDissection && n < kMax / 4 && neighbours < kMax / 4;
}

// Memory, in bytes, that nested dissection needs. METIS stores the graph and every coarser graph,
// each with half of the vertices and two numbers per neighbor. In a random graph the number of
// neighbors does not shrink until all pairs of vertices are neighbors: after log2(n / sqrt(z))
// halvings, for n vertices and z neighbors. The parts of a graph together need no more.
//
// The program's heap grows in large pieces. kHeapPieces covers graphs that need less than one
// piece.
inline size_t NestedDissectionBytes(int64_t n, int64_t neighbours) {
  constexpr double kHeapPieces = 1 << 19;
  constexpr double kBytesPerVertex = 128;
  constexpr double kBytesPerNeighbour =
      24;  // The graph, a part's copy, and graphs after the last level.
  constexpr double kBytesPerNeighbourAndLevel = 8;
  const auto z = static_cast<double>(std::max<int64_t>(neighbours, 1));
  const double levels = std::max(0.0, std::log2(static_cast<double>(n) / std::sqrt(z)));
  return static_cast<size_t>(kHeapPieces + static_cast<double>(n) * kBytesPerVertex +
                             z * (kBytesPerNeighbour + kBytesPerNeighbourAndLevel * levels));
}

// Memory limit, in bytes, of the program for a graph of this size, forks included.
inline size_t OrderingProgramBytes(OrderingMethod method, int64_t n, int64_t neighbours) {
  if (method == OrderingMethod::kNestedDissection) return NestedDissectionBytes(n, neighbours);
  constexpr size_t kRounding = size_t{1} << 18;  // rounds arrays up to pages
  const size_t graph = static_cast<size_t>(n + 1) * sizeof(int64_t) +
                       static_cast<size_t>(neighbours) * sizeof(int32_t);
  return graph + MinimumDegreeBytes(n, neighbours) + MinimumDegreeVertexBytes(n) + kRounding;
}

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_ORDERING_PROTOCOL_H_
