// SPDX-License-Identifier: Apache-2.0

// Operations on the single columns of a block of vectors.
#ifndef CROUT_KERNELS_CUDA_OPS_VECTOR_COLUMNS_H_
#define CROUT_KERNELS_CUDA_OPS_VECTOR_COLUMNS_H_

#include <cuda_runtime_api.h>

#include "kernels/matrix.h"

namespace crout::cuda {

// KrylovOps specifies these functions. w is in float64 or complex128. `scales` and `most` are in
// device memory.
cudaError_t LaunchScaleColumns(const double* scales, const AnyMatrix& w, cudaStream_t stream);
cudaError_t LaunchColumnMaxAbs(const AnyMatrix& w, double* most, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_VECTOR_COLUMNS_H_
