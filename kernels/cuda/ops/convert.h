// Copies that convert the element type, the storage order or the scale.
#ifndef CROUT_KERNELS_CUDA_OPS_CONVERT_H_
#define CROUT_KERNELS_CUDA_OPS_CONVERT_H_

#include <cuda_runtime_api.h>

#include "kernels/matrix.h"

namespace crout::cuda {

// Enqueues out := diag(row) in diag(col), where null is the identity.
cudaError_t LaunchCopyScaled(const AnyMatrix& in, const double* row, const double* col,
                             const AnyMatrix& out, cudaStream_t stream);

// Enqueues out := transpose of in.
cudaError_t LaunchTranspose(const AnyMatrix& in, const AnyMatrix& out, cudaStream_t stream);

// Enqueues x := x + d.
cudaError_t LaunchAdd(const MatrixView<double>& d, const MatrixView<double>& x,
                      cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_CONVERT_H_
