// Elimination trees: which column of a factor needs which, and how many entries each has.
#ifndef CROUT_KERNELS_SPARSE_ELIMINATION_TREE_H_
#define CROUT_KERNELS_SPARSE_ELIMINATION_TREE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/sparse/graph.h"
#include "kernels/stop_requested.h"

namespace crout {

// Of a graph whose vertices are eliminated in an order that is a postorder of the tree itself: each
// subtree's positions are consecutive, its root's the last.
struct EliminationTree {
  std::vector<int32_t> order;   // the vertex that is eliminated at each position
  std::vector<int32_t> parent;  // positions; -1 of roots
  std::vector<int32_t> count;   // entries of L's column, the diagonal included

  // Operations of an LU factorization by columns, without zeros.
  double Flops() const;
};

// The tree of elimination in this order, which is then made a postorder of it: same fill-in.
// CANCELLED by `stop`, which is asked often.
absl::StatusOr<EliminationTree> MakeEliminationTree(const Graph& graph,
                                                    const std::vector<int32_t>& order,
                                                    StopRequested stop);

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_ELIMINATION_TREE_H_
