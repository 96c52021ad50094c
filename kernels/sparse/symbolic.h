// Symbolic factorization: the rows of every front, and where everything of them lies.
#ifndef CROUT_KERNELS_SPARSE_SYMBOLIC_H_
#define CROUT_KERNELS_SPARSE_SYMBOLIC_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse/front_tree.h"
#include "kernels/sparse/graph.h"

namespace crout {

// Fills what Analysis says of fronts, levels and their numbers. On entry it has n and
// nonzeros, row_order and column_order, of which the former is the order of `tree`. Errors are
// those of Analyze.
absl::Status FillSymbolic(const Graph& graph, const FrontTree& tree, StopRequested stop,
                          Analysis& analysis);

// Bytes of what FillSymbolic fills.
size_t SymbolicBytes(const FrontTree& tree);

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_SYMBOLIC_H_
