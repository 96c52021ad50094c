// SPDX-License-Identifier: Apache-2.0

// Block rows of U: applies a factored block of columns to the block's rows in later columns.
#ifndef CROUT_KERNELS_CUDA_CROUT_LU_BLOCK_ROW_H_
#define CROUT_KERNELS_CUDA_CROUT_LU_BLOCK_ROW_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/blocked/interchange_rows.h"
#include "kernels/cuda/blocked/lu_control.h"
#include "kernels/matrix.h"

namespace crout::cuda {

// The inverse of a diagonal tile of a unit lower triangle. Elements are stored in the order in
// which a warp reads them.
template <class T>
struct TileInverse {
  static constexpr int kOrder = 32;

  alignas(16) T elements[kOrder * kOrder];
  int substitute;  // non-zero: the inverse has large elements and must not be used
};

// The data of a block row that depend on the factored block alone, in device memory.
template <class T>
struct BlockRowPlan {
  static constexpr int kMaxRows = InterchangePlan::kMaxRows;
  static constexpr int kTile = TileInverse<T>::kOrder;

  InterchangePlan interchanges;
  TileInverse<T> tiles[kMaxRows / kTile];
};

// Enqueues the computation of `plan` for `block`, the unit lower triangle of a factored block of at
// most kMaxRows columns that starts `above` rows below the top. The interchanges are
// ipiv[0..block.cols) (1-based); a null `ipiv` means none. `overlap` has the meaning it has in
// LaunchSwapAndSolve. No-op once `control` has halted.
template <class T>
cudaError_t LaunchPlanBlockRow(const MatrixView<T>& block, const int64_t* ipiv, int64_t above,
                               BlockRowPlan<T>* plan, const LuControl<T>* control, bool overlap,
                               cudaStream_t stream);

// Enqueues the plan's interchanges in `b`, which holds later columns from the block's first row on.
// Then multiplies the first block.cols rows of b by L^-1. Uses products with the tiles and their
// inverses, or substitution if an inverse must not be used. No-op once `control` has halted.
// Requires a GPU with BlockRowBytes() of shared memory and elements of at most 8 bytes.
template <class T>
cudaError_t LaunchBlockRow(const MatrixView<T>& block, const BlockRowPlan<T>* plan,
                           const MatrixView<T>& b, const LuControl<T>* control, bool overlap,
                           cudaStream_t stream);

// Bytes of shared memory that one block of threads of LaunchBlockRow or LaunchSolveRows needs.
template <class T>
size_t BlockRowBytes();
template <class T>
size_t SolveRowsBytes();

// The largest number of rows that LaunchSolveRows accepts. With more rows, fewer blocks of threads
// would fit on a multiprocessor, and each block is a serial chain of tiles.
inline constexpr int64_t kSolvedRows = 128;

// Enqueues b := L^-1 b without interchanges, for `block`, at most kSolvedRows rows of a triangle,
// with the inverses of its tiles. Faster than LaunchBlockRow if b has many columns.
template <class T>
cudaError_t LaunchSolveRows(const MatrixView<T>& block, const TileInverse<T>* tiles,
                            const MatrixView<T>& b, const LuControl<T>* control, bool overlap,
                            cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_LU_BLOCK_ROW_H_
