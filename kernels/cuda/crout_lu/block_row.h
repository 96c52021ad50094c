// A block row of U: what a factored block of columns does to its own rows of later columns.
#ifndef CROUT_KERNELS_CUDA_CROUT_LU_BLOCK_ROW_H_
#define CROUT_KERNELS_CUDA_CROUT_LU_BLOCK_ROW_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/blocked/interchange_rows.h"
#include "kernels/cuda/blocked/lu_control.h"
#include "kernels/matrix.h"

namespace crout::cuda {

// The inverse of a tile on the diagonal of a unit lower triangle, its elements in the order in
// which a warp reads them.
template <class T>
struct TileInverse {
  static constexpr int kOrder = 32;

  alignas(16) T elements[kOrder * kOrder];
  int substitute;  // non-zero: it has large elements, and is not to be used
};

// What depends on the block alone, in device memory.
template <class T>
struct BlockRowPlan {
  static constexpr int kMaxRows = InterchangePlan::kMaxRows;
  static constexpr int kTile = TileInverse<T>::kOrder;

  InterchangePlan interchanges;
  TileInverse<T> tiles[kMaxRows / kTile];
};

// Enqueues the plan of `block`, the unit lower triangle of a factored block of at most kMaxRows
// columns below `above` rows, and of its interchanges ipiv[0..block.cols) (1-based), or of none
// where `ipiv` is null. `overlap`: as LaunchSwapAndSolve's. Nothing once `control` has halted.
template <class T>
cudaError_t LaunchPlanBlockRow(const MatrixView<T>& block, const int64_t* ipiv, int64_t above,
                               BlockRowPlan<T>* plan, const LuControl<T>* control, bool overlap,
                               cudaStream_t stream);

// Enqueues the interchanges of the plan in `b`, later columns from the block's first row on, and
// then b's first block.cols rows := L^-1 of them: by products with the tiles and their inverses,
// and by substitution where an inverse is not to be used. Nothing once `control` has halted. For
// GPUs that have BlockRowBytes() for it, and elements of at most 8 bytes.
template <class T>
cudaError_t LaunchBlockRow(const MatrixView<T>& block, const BlockRowPlan<T>* plan,
                           const MatrixView<T>& b, const LuControl<T>* control, bool overlap,
                           cudaStream_t stream);

// Shared memory of a block of threads of LaunchBlockRow, and of LaunchSolveRows.
template <class T>
size_t BlockRowBytes();
template <class T>
size_t SolveRowsBytes();

// The most rows that LaunchSolveRows takes: with more, fewer of its blocks of threads would fit a
// multiprocessor, and each is a chain of its tiles.
inline constexpr int64_t kSolvedRows = 128;

// Enqueues b := L^-1 b alike without interchanges, for `block`, at most kSolvedRows rows of a
// triangle, with the inverses of its tiles. Faster where b has many columns.
template <class T>
cudaError_t LaunchSolveRows(const MatrixView<T>& block, const TileInverse<T>* tiles,
                            const MatrixView<T>& b, const LuControl<T>* control, bool overlap,
                            cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_LU_BLOCK_ROW_H_
