// SPDX-License-Identifier: Apache-2.0

// Elimination trees: dependencies between the columns of a factor, and their numbers of entries.
#ifndef CROUT_KERNELS_SPARSE_ELIMINATION_TREE_H_
#define CROUT_KERNELS_SPARSE_ELIMINATION_TREE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/sparse/graph.h"
#include "kernels/stop_requested.h"

namespace crout {

// Elimination tree of a graph. The elimination order is a postorder of the tree: the positions of
// each subtree are consecutive and its root is the last of them.
struct EliminationTree {
  std::vector<int32_t> order;   // vertex eliminated at each position
  std::vector<int32_t> parent;  // position of the parent; -1 for roots
  std::vector<int32_t> count;   // entries of each column of L, diagonal included

  // Operations of a column-by-column LU factorization, excluding zeros.
  double Flops() const;
};

// Computes the tree for this elimination order, and reorders the vertices to a postorder of the
// tree with the same fill-in. CANCELLED if `stop` returns true; it is called often.
absl::StatusOr<EliminationTree> MakeEliminationTree(const Graph& graph,
                                                    const std::vector<int32_t>& order,
                                                    StopRequested stop);

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_ELIMINATION_TREE_H_
