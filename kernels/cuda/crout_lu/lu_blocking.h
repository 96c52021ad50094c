// How a factorization by crout_lu is cut up.
#ifndef CROUT_KERNELS_CUDA_CROUT_LU_LU_BLOCKING_H_
#define CROUT_KERNELS_CUDA_CROUT_LU_LU_BLOCKING_H_

#include <cstdint>

#include "kernels/cuda/crout_lu/panel_layout.h"
#include "kernels/matrix.h"

namespace crout::cuda {

struct LuBlocking {
  int64_t block;            // columns of a panel; with look-ahead a multiple of 32, at most 512
  int64_t two_blocks_left;  // a panel has two blocks while so many columns are left
  int64_t right_looking;    // elements of a panel that are updated after each of its leaves
  bool look_ahead;          // the next panel is factored while the trailing matrix is updated
  bool tf32;                // float32 with look-ahead: that update by SubtractTf32Product
  // With panels of two blocks: the trailing matrix's rows are interchanged while its products run,
  // as long as so many columns are left.
  int64_t overlap_left = 0;

  // The fastest that was measured on an H100 for min(m, n) columns.
  static LuBlocking For(DType dtype, int64_t columns);

  // With look-ahead, of so many columns.
  PanelLayout panels(int64_t columns) const;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_LU_LU_BLOCKING_H_
