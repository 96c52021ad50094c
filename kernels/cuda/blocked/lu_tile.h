// SPDX-License-Identifier: Apache-2.0

// Gaussian elimination without pivoting of one tile, in shared memory.
#ifndef CROUT_KERNELS_CUDA_BLOCKED_LU_TILE_H_
#define CROUT_KERNELS_CUDA_BLOCKED_LU_TILE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/blocked/lu_control.h"
#include "kernels/cuda/device/host_signals.h"
#include "kernels/matrix.h"

namespace crout::cuda {

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

#endif  // CROUT_KERNELS_CUDA_BLOCKED_LU_TILE_H_
