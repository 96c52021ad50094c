// What the product and its program crout-order say to each other, on the program's standard input
// and output: n, the number of neighbours, Graph::start and Graph::neighbour, all int32; then the
// order, n int32. No answer: it failed.
#ifndef CROUT_KERNELS_SPARSE_ORDERING_PROTOCOL_H_
#define CROUT_KERNELS_SPARSE_ORDERING_PROTOCOL_H_

#include <cstdint>
#include <limits>

namespace crout {

inline constexpr char kOrderingProgram[] = "crout-order";

// METIS's own arrays have up to four times the vertices, and twice the neighbours.
constexpr bool FitsOrderingProgram(int64_t n, int64_t neighbours) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 4;
  return n >= 0 && neighbours >= 0 && n < kMost && neighbours < kMost;
}

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_ORDERING_PROTOCOL_H_
