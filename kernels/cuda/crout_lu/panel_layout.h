// SPDX-License-Identifier: Apache-2.0

// The column ranges of the panels of a factorization with look-ahead.
#ifndef CROUT_KERNELS_CUDA_CROUT_LU_PANEL_LAYOUT_H_
#define CROUT_KERNELS_CUDA_CROUT_LU_PANEL_LAYOUT_H_

#include <cstdint>

namespace crout::cuda {

// The panels of `columns` columns. They are two blocks wide before column `two_blocks_end`, a
// multiple of that width, and one block wide from there on. The last panel may be narrower.
// constexpr, so that device code may call it too.
struct PanelLayout {
  static constexpr int kMaxBlocks = 2;  // in a panel

  int64_t columns;
  int64_t block;  // columns of a block
  int64_t two_blocks_end;

  // The end of the panel that contains column `j`; `columns` if there is none.
  constexpr int64_t EndOf(int64_t j) const {
    const int64_t width = j < two_blocks_end ? kMaxBlocks * block : block;
    const int64_t end = (j / width + 1) * width;
    return end < columns ? end : columns;
  }
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_LU_PANEL_LAYOUT_H_
