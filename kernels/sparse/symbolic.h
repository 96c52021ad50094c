// Symbolic factorization: the rows of every front, and where everything of them lies.
#ifndef CROUT_KERNELS_SPARSE_SYMBOLIC_H_
#define CROUT_KERNELS_SPARSE_SYMBOLIC_H_

#include <cstddef>
#include <functional>

#include "absl/status/status.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse/front_tree.h"
#include "kernels/sparse/graph.h"

namespace crout {

// Fills what Analysis says of fronts, levels and their numbers. On entry it has n and
// nonzeros, row_order and column_order, of which the former is the order of `tree`. The caller has
// claimed SymbolicBytes(tree); `claim` is called before that is not what it takes, with what is.
// Errors are claim's and those of Analyze.
absl::Status FillSymbolic(const Graph& graph, const FrontTree& tree,
                          const std::function<absl::Status(size_t bytes)>& claim,
                          StopRequested stop, Analysis& analysis);

// Bytes of what FillSymbolic fills, where the borders are counted.
size_t SymbolicBytes(const FrontTree& tree);

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_SYMBOLIC_H_
