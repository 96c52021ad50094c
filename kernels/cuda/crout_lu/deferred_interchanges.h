// SPDX-License-Identifier: Apache-2.0

// Row interchanges that a blocked factorization defers to its end.
#ifndef CROUT_KERNELS_CUDA_CROUT_LU_DEFERRED_INTERCHANGES_H_
#define CROUT_KERNELS_CUDA_CROUT_LU_DEFERRED_INTERCHANGES_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/blocked/lu_control.h"
#include "kernels/cuda/crout_lu/lu_blocking.h"
#include "kernels/dtype.h"
#include "kernels/matrix.h"

namespace crout::cuda {

// Bytes of workspace for a matrix with m rows.
size_t DeferredInterchangesBytes(DType dtype, int64_t m, const PanelLayout& panels);

// Enqueues, for every panel's columns, the interchanges of all later panels, from
// ipiv[0..panels.columns). One pass over the columns reads and writes each element once; single
// interchanges would touch one memory sector per element. No-op once `control` has halted.
// `workspace`: DeferredInterchangesBytes() of device memory.
template <class T>
cudaError_t LaunchDeferredInterchanges(const MatrixView<T>& a, const int64_t* ipiv,
                                       const PanelLayout& panels, std::byte* workspace,
                                       const LuControl<T>* control, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_LU_DEFERRED_INTERCHANGES_H_
