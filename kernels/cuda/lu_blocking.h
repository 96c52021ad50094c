// How a factorization by crout_lu is cut up.
#ifndef CROUT_KERNELS_CUDA_LU_BLOCKING_H_
#define CROUT_KERNELS_CUDA_LU_BLOCKING_H_

#include <cstdint>

#include "kernels/cuda/panel_layout.h"
#include "kernels/matrix.h"

namespace crout {

struct LuBlocking {
  int64_t block;    // columns of a panel; with look-ahead a multiple of 32, at most 512
  int64_t wide;     // a panel has two blocks while so many columns are left
  int64_t follow;   // elements of a panel that follow every leaf at once (right-looking)
  bool look_ahead;  // the next panel beside the rest of the update
  bool tf32;        // float32 with look-ahead: the rest by SubtractTf32Product
  // With panels of two blocks: the rest's rows move beside its products while so many columns are
  // left.
  int64_t beside = 0;

  // The fastest that was measured on an H100 for min(m, n) columns.
  static LuBlocking For(DType dtype, int64_t columns);

  // With look-ahead, of so many columns.
  PanelLayout panels(int64_t columns) const;
};

}  // namespace crout

#endif  // CROUT_KERNELS_CUDA_LU_BLOCKING_H_
