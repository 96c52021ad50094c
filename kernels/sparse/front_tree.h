// SPDX-License-Identifier: Apache-2.0

// Fronts: groups of columns that are eliminated together.
#ifndef CROUT_KERNELS_SPARSE_FRONT_TREE_H_
#define CROUT_KERNELS_SPARSE_FRONT_TREE_H_

#include <cstdint>
#include <vector>

#include "kernels/sparse/elimination_tree.h"

namespace crout {

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

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_FRONT_TREE_H_
