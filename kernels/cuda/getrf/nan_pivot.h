// SPDX-License-Identifier: Apache-2.0

// Corrects cuSOLVER's info for NaN pivots.
#ifndef CROUT_KERNELS_CUDA_GETRF_NAN_PIVOT_H_
#define CROUT_KERNELS_CUDA_GETRF_NAN_PIVOT_H_

#include <cuda_runtime_api.h>

#include "kernels/matrix.h"

namespace crout::cuda {

// Enqueues info := 0 if `info`, in device memory as cusolverDnXgetrf set it, names a pivot of `lu`
// that is NaN. LAPACK's info names only zero pivots; a factor that is not finite is reported by its
// growth.
cudaError_t LaunchClearNanPivotInfo(const AnyMatrix& lu, int* info, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_GETRF_NAN_PIVOT_H_
