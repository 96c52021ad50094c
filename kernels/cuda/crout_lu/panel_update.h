// What other columns do after a panel of LU: its interchanges, the solve with its triangle, and the
// product.
#ifndef CROUT_KERNELS_CUDA_CROUT_LU_PANEL_UPDATE_H_
#define CROUT_KERNELS_CUDA_CROUT_LU_PANEL_UPDATE_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/crout_lu/lu_panel.h"
#include "kernels/matrix.h"

namespace crout::cuda {

// Enqueues the panel's interchanges of the rows of `left`, `right` and `beyond` (the panel's rows
// of further columns, or no columns), and then right's first panel.a.cols rows := L^-1 of them, L
// the panel's unit lower triangle. Nothing once panel.control has halted. `overlap`: the GPU can
// start the kernel while the one before it ends.
template <class T>
cudaError_t LaunchSwapAndSolve(const LuPanel<T>& panel, const MatrixView<T>& left,
                               const MatrixView<T>& right, const MatrixView<T>& beyond,
                               bool overlap, cudaStream_t stream);

// Enqueues right's other rows := them minus L times its first panel.a.cols rows, after
// LaunchSwapAndSolve. For matrices that fit the second-level cache: there a kernel of 32 columns is
// mostly its start, which `overlap` hides.
template <class T>
cudaError_t LaunchSubtractPanel(const LuPanel<T>& panel, const MatrixView<T>& right, bool overlap,
                                cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_LU_PANEL_UPDATE_H_
