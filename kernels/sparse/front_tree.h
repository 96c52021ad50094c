// SPDX-License-Identifier: Apache-2.0

// The analysis from an elimination order to fronts: elimination tree, groups of columns that are
// eliminated together, and symbolic factorization (the rows of every front and all offsets).
#ifndef CROUT_KERNELS_SPARSE_FRONT_TREE_H_
#define CROUT_KERNELS_SPARSE_FRONT_TREE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/sparse/analysis.h"
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

// A tree of fronts in postorder, in the terms of Analysis.
struct FrontTree {
  std::vector<int32_t> order;           // vertex eliminated at each position
  std::vector<int32_t> first_position;  // fronts + 1
  std::vector<int32_t> bordered;        // d2 of each front
  bool counted = true;                  // true: `bordered` is exact; false: an estimate
  std::vector<int32_t> parent;          // -1 for roots
};

// Makes one front from columns with the same structure below the diagonal. Then merges a child into
// its parent if this adds few zeros or both are small. The order changes: children are sorted so
// that waiting contributions need the least memory. CANCELLED if `stop` returns true; it is called
// often.
absl::StatusOr<FrontTree> MakeFrontTree(const EliminationTree& tree, StopRequested stop);

// Fills the fields of Analysis that describe fronts and levels. On entry `analysis` has n,
// nonzeros, row_order (the order of `tree`) and column_order. The caller has claimed
// SymbolicBytes(tree). Before more is needed, `claim` is called with the new total. Errors are
// those of `claim` and of Analyze.
absl::Status FillSymbolic(const Graph& graph, const FrontTree& tree,
                          const std::function<absl::Status(size_t bytes)>& claim,
                          StopRequested stop, Analysis& analysis);

// Size, in bytes, of the arrays that FillSymbolic fills, if the borders were counted.
size_t SymbolicBytes(const FrontTree& tree);

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_FRONT_TREE_H_
