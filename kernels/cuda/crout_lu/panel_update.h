// SPDX-License-Identifier: Apache-2.0

// Applies a panel of LU to other columns: interchanges, triangular solve and product.
#ifndef CROUT_KERNELS_CUDA_CROUT_LU_PANEL_UPDATE_H_
#define CROUT_KERNELS_CUDA_CROUT_LU_PANEL_UPDATE_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/crout_lu/lu_panel.h"
#include "kernels/matrix.h"

namespace crout::cuda {

// Enqueues the panel's interchanges in `left`, `right` and `beyond`, which hold the panel's rows of
// other columns and may have no columns. Then multiplies the first panel.a.cols rows of `right` by
// L^-1, with L the panel's unit lower triangle. No-op once panel.control has halted. `overlap`: the
// GPU can start the kernel while the previous one ends.
template <class T>
cudaError_t LaunchSwapAndSolve(const LuPanel<T>& panel, const MatrixView<T>& left,
                               const MatrixView<T>& right, const MatrixView<T>& beyond,
                               bool overlap, cudaStream_t stream);

// Enqueues the update of the remaining rows of `right`: subtracts L times its first panel.a.cols
// rows. Call after LaunchSwapAndSolve. For matrices that fit in the L2 cache: there a kernel of 32
// columns is mostly launch latency, which `overlap` hides.
template <class T>
cudaError_t LaunchSubtractPanel(const LuPanel<T>& panel, const MatrixView<T>& right, bool overlap,
                                cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_LU_PANEL_UPDATE_H_
