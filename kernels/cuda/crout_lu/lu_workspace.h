// SPDX-License-Identifier: Apache-2.0

// Workspace of the blocked LU.
#ifndef CROUT_KERNELS_CUDA_CROUT_LU_LU_WORKSPACE_H_
#define CROUT_KERNELS_CUDA_CROUT_LU_LU_WORKSPACE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/crout_lu/lu_blocking.h"
#include "kernels/cuda/crout_lu/lu_panel.h"
#include "kernels/scalar.h"

namespace crout::cuda {

// Block row plans: those of the blocks of two consecutive panels, because one queue may lag behind
// the other, and one for blocks within a panel.
inline constexpr int kPlansOfPanels = 2 * PanelLayout::kMaxBlocks;
inline constexpr int kPlans = kPlansOfPanels + 1;

// Offsets of the parts of the workspace, which begins with the LuControl. cuBLAS requires its
// workspace at a multiple of 256 bytes.
struct LuWorkspace {
  static constexpr size_t kAlignment = 256;

  // Layout for the first `columns` columns of a matrix with `m` rows.
  static LuWorkspace For(const LuPanelKernels& kernels, const LuBlocking& blocking, DType dtype,
                         int64_t m, int64_t columns);

  size_t plans = kAlignment;
  // Workspace of the urgent queue. This and `deferred` are used only with look-ahead.
  size_t cublas = 0;
  size_t deferred = 0;
  size_t split = 0;  // TF32 parts of a panel. This and the next two are used only with `tf32`.
  size_t split_trailing = 0;  // TF32 parts of the panel's rows of U in the trailing matrix
  size_t split_next = 0;      // TF32 parts of the panel's rows of U in the next panel
  size_t scratch = 0;         // scratch memory of the panels
  size_t bytes = 0;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_LU_LU_WORKSPACE_H_
