// How a factorization by crout_lu is cut up.
#ifndef CROUT_KERNELS_CUDA_CROUT_LU_LU_BLOCKING_H_
#define CROUT_KERNELS_CUDA_CROUT_LU_LU_BLOCKING_H_

#include <cstdint>

#include "kernels/cuda/crout_lu/panel_layout.h"
#include "kernels/matrix.h"

namespace crout::cuda {

struct LuBlocking {
  // Columns of a block; with look-ahead a multiple of 32, at most 512. A panel is a block, or two
  // where at least `two_blocks_left` columns are left to factor.
  int64_t block;
  int64_t two_blocks_left;
  // About how many elements of a panel are updated after each leaf of its recursion: high panels
  // update few columns at once, low ones many.
  int64_t right_looking;
  bool look_ahead;  // the next panel is factored while the trailing matrix is updated
  // Single precision with look-ahead, real or complex: that update, and the next panel's, by
  // SubtractTf32Product.
  bool tf32;
  // With panels of two blocks: the trailing matrix's rows are interchanged while its products run,
  // where at least so many columns are left.
  int64_t overlap_left = 0;
  // Likewise: by SubtractOneTf32Product.
  bool one_tf32_product = false;

  // The fastest that was measured on an H100 for min(m, n) columns; `tf32_products`: of those whose
  // trailing products in single precision are single TF32 ones.
  static LuBlocking For(DType dtype, int64_t columns, bool tf32_products = false);

  // Where the panels of a factorization of so many columns begin and end. For look_ahead only.
  PanelLayout panels(int64_t columns) const;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_LU_LU_BLOCKING_H_
