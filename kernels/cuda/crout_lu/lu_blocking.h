// SPDX-License-Identifier: Apache-2.0

// Block sizes of a factorization by crout_lu.
#ifndef CROUT_KERNELS_CUDA_CROUT_LU_LU_BLOCKING_H_
#define CROUT_KERNELS_CUDA_CROUT_LU_LU_BLOCKING_H_

#include <cstdint>

#include "kernels/matrix.h"

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

struct LuBlocking {
  // Columns of a block; with look-ahead, a multiple of 32 and at most 512. A panel is one block, or
  // two blocks while at least `two_blocks_left` columns are left to factor.
  int64_t block;
  int64_t two_blocks_left;
  // Approximate number of panel elements that are updated after each leaf of the recursion: high
  // panels update few columns at once, low ones many.
  int64_t right_looking;
  bool look_ahead;  // the next panel is factored while the trailing matrix is updated
  // For single precision, real or complex, with look-ahead: both the trailing update and the next
  // panel's update use SubtractTf32Product.
  bool tf32;
  // With panels of two blocks: the trailing matrix's rows are interchanged while its products run,
  // if at least this many columns are left.
  int64_t overlap_left = 0;
  // Like `tf32`, but with SubtractOneTf32Product.
  bool one_tf32_product = false;

  // The fastest blocking measured on an H100 for min(m, n) columns. `tf32_products`: trailing
  // products in single precision are single TF32 products.
  static LuBlocking For(DType dtype, int64_t columns, bool tf32_products = false);

  // The panels of a factorization of `columns` columns. Requires look_ahead.
  PanelLayout panels(int64_t columns) const;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_LU_LU_BLOCKING_H_
