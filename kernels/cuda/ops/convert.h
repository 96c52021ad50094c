// Copies that convert the element type, the storage order or the scale.
#ifndef CROUT_KERNELS_CUDA_OPS_CONVERT_H_
#define CROUT_KERNELS_CUDA_OPS_CONVERT_H_

#include <cuda_runtime_api.h>

#include "kernels/matrix.h"
#include "kernels/sparse_view.h"

namespace crout::cuda {

// Enqueues out := in. Where one is complex and the other real the shapes say what the real one is:
// the real numbers of a complex `out` of its shape, or, with twice the columns, first all real
// parts, then all imaginary ones.
cudaError_t LaunchCopy(const AnyMatrix& in, const AnyMatrix& out, cudaStream_t stream);

// Enqueues out := diag(row) in diag(col), where null is the identity. Both are real, or both
// complex.
cudaError_t LaunchCopyScaled(const AnyMatrix& in, const double* row, const double* col,
                             const AnyMatrix& out, cudaStream_t stream);

// Enqueues out := diag(row) in diag(col) in full, the same. out: n x n.
cudaError_t LaunchDensify(const AnySparse& in, const double* row, const double* col,
                          const AnyMatrix& out, cudaStream_t stream);

// Enqueues out := transpose of in; real and complex ones as LaunchCopy has them, in the columns of
// a matrix as it is before or after.
cudaError_t LaunchTranspose(const AnyMatrix& in, const AnyMatrix& out, cudaStream_t stream);

// Enqueues x := x + d, in float64 or complex128.
cudaError_t LaunchAdd(const AnyMatrix& d, const AnyMatrix& x, cudaStream_t stream);

// Enqueues x := conj(x) of a complex x.
cudaError_t LaunchConjugate(const AnyMatrix& x, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_CONVERT_H_
