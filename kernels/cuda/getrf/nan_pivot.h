// What cuSOLVER says of pivots that are no numbers.
#ifndef CROUT_KERNELS_CUDA_GETRF_NAN_PIVOT_H_
#define CROUT_KERNELS_CUDA_GETRF_NAN_PIVOT_H_

#include <cuda_runtime_api.h>

#include "kernels/matrix.h"

namespace crout::cuda {

// Enqueues info := 0 where info, in device memory and as cusolverDnXgetrf left it, names a pivot of
// `lu` that is NaN. LAPACK's info names zeros alone; that a factor is not finite, its growth says.
cudaError_t LaunchForgiveNanPivot(const AnyMatrix& lu, int* info, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_GETRF_NAN_PIVOT_H_
