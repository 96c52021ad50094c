// SPDX-License-Identifier: Apache-2.0

// The workspace of a numeric factorization.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_NUMERIC_WORKSPACE_H_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_NUMERIC_WORKSPACE_H_

#include <cstddef>

#include "kernels/cuda/crout_lu/lu_panel.h"
#include "kernels/cuda/multifrontal/level_plan.h"
#include "kernels/cuda/multifrontal/traversal.h"
#include "kernels/matrix.h"
#include "kernels/sparse/analysis.h"

namespace crout::cuda {

// Offsets of the arrays in bytes.
struct NumericWorkspace {
  NumericWorkspace(const LuPanelKernels& kernels, const Analysis& analysis, const LevelPlan& levels,
                   const Traversal& traversal, DType dtype);

  size_t report, pivot_flags;  // adjacent, like `arrivals`; initially zero
  size_t arrivals;             // FrontArrivals: by front, then by stage
  size_t zero_bytes;           // size of these three arrays
  size_t factor_start, contribution_start, border_start, shift;  // FrontArrays
  size_t step_start, first_position, parent, child_start;
  size_t order;  // the traversal's order, if it differs from the level plan's
  size_t large, border, position_of_row, position_of_column, front_of;
  size_t least, ipiv, info, f11, f21, f12, f22, contributions;
  size_t front_lu, front_lu_bytes, cublas, cublas_bytes;
  size_t bytes;
};

// Returns the first traversal whose workspace has at most `most` bytes. If there is none, returns
// the first one with the smallest workspace.
Traversal TraversalWithin(const LuPanelKernels& kernels, const Analysis& analysis,
                          const LevelPlan& levels, DType dtype, size_t most);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_NUMERIC_WORKSPACE_H_
