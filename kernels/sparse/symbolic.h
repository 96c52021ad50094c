// SPDX-License-Identifier: Apache-2.0

// Symbolic factorization: the rows of every front and all offsets.
#ifndef CROUT_KERNELS_SPARSE_SYMBOLIC_H_
#define CROUT_KERNELS_SPARSE_SYMBOLIC_H_

#include <cstddef>
#include <functional>

#include "absl/status/status.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse/front_tree.h"
#include "kernels/sparse/graph.h"

namespace crout {

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

#endif  // CROUT_KERNELS_SPARSE_SYMBOLIC_H_
