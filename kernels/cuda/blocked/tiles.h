// SPDX-License-Identifier: Apache-2.0

// Elimination of one tile, and triangular solves with it: the leaves of blocked methods.
#ifndef CROUT_KERNELS_CUDA_BLOCKED_TILES_H_
#define CROUT_KERNELS_CUDA_BLOCKED_TILES_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/blocked/lu_control.h"
#include "kernels/cuda/device/host_signals.h"
#include "kernels/matrix.h"

namespace crout::cuda {

enum class TileSolve : uint8_t {
  kLower,           // b := L^-1 b, L with its diagonal
  kUnitLower,       // b := L^-1 b, unit diagonal
  kUnitUpper,       // b := U^-1 b, unit diagonal
  kUpperFromRight,  // b := b U^-1, U with its diagonal
};

inline constexpr int64_t kMaxTile = 64;
// The largest order of tiles in solves: the triangle must fit in shared memory.
template <class T>
inline constexpr int64_t kMaxSolveTile = sizeof(T) > sizeof(double) ? kMaxTile / 2 : kMaxTile;

// Enqueues a solve by substitution with a triangle of `tile`, whose order is at most kMaxSolveTile;
// the other triangle is not read. If a diagonal element is zero, the unknown becomes 0. No-op once
// `control` has halted.
template <class T>
cudaError_t LaunchSolveTile(TileSolve solve, const MatrixView<T>& tile, const MatrixView<T>& b,
                            const LuControl<T>* control, cudaStream_t stream);

// Enqueues tile := its L (unit diagonal) and U; at most kMaxTile rows and columns. A pivot that is
// zero, below the type's normal range, or NaN is refused. Then control->info becomes `first` plus
// the pivot's 1-based index, the tile is not modified, and `control` halts. It also halts if the
// host requests it.
template <class T>
cudaError_t LaunchLuTile(const MatrixView<T>& tile, int64_t first, const HostSignals& host,
                         LuControl<T>* control, cudaStream_t stream);

// Enqueues ipiv[k] := k + 1 for k in [0, n).
cudaError_t LaunchIdentityPivots(int64_t* ipiv, int64_t n, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_BLOCKED_TILES_H_
