// Fronts: columns that are eliminated together.
#ifndef CROUT_KERNELS_SPARSE_FRONT_TREE_H_
#define CROUT_KERNELS_SPARSE_FRONT_TREE_H_

#include <cstdint>
#include <vector>

#include "kernels/sparse/elimination_tree.h"

namespace crout {

// A tree of fronts in postorder; the terms are Analysis'.
struct FrontTree {
  std::vector<int32_t> order;           // the vertex that is eliminated at each position
  std::vector<int32_t> first_position;  // fronts + 1
  std::vector<int32_t> bordered;        // d2 of each front
  bool counted = true;                  // whether `bordered` is right, and not a guess
  std::vector<int32_t> parent;          // -1 of roots
};

// Columns of the same structure below the diagonal become one front, and then a child is merged
// into its parent where that brings few zeros, or both are small. A new order: children stand where
// the contributions that wait for them take the least memory. CANCELLED by `stop`, which is asked
// often.
absl::StatusOr<FrontTree> MakeFrontTree(const EliminationTree& tree, StopRequested stop);

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_FRONT_TREE_H_
