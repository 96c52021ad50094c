// SPDX-License-Identifier: Apache-2.0

// Copies that convert the element type, the storage order or the scale.
#ifndef CROUT_KERNELS_CUDA_OPS_CONVERT_H_
#define CROUT_KERNELS_CUDA_OPS_CONVERT_H_

#include <cuda_runtime_api.h>

#include "kernels/matrix.h"
#include "kernels/sparse_view.h"

namespace crout::cuda {

// Enqueues out := in. If exactly one is complex, the shapes determine the meaning of the real one.
// With equal shapes, a real `in` holds the real parts of `out`. With twice the columns, the real
// matrix holds all real parts, then all imaginary parts.
cudaError_t LaunchCopy(const AnyMatrix& in, const AnyMatrix& out, cudaStream_t stream);

// Enqueues out := diag(row) in diag(col); a null pointer is the identity. Both matrices are real,
// or both complex.
cudaError_t LaunchCopyScaled(const AnyMatrix& in, const double* row, const double* col,
                             const AnyMatrix& out, cudaStream_t stream);

// Enqueues the same for a sparse `in`; `out` is a full n x n matrix.
cudaError_t LaunchDensify(const AnySparse& in, const double* row, const double* col,
                          const AnyMatrix& out, cudaStream_t stream);

// Enqueues out := transpose of in. If exactly one is complex, the real one has twice the columns,
// like in LaunchCopy.
cudaError_t LaunchTranspose(const AnyMatrix& in, const AnyMatrix& out, cudaStream_t stream);

// Enqueues x := x + d, in float64 or complex128.
cudaError_t LaunchAdd(const AnyMatrix& d, const AnyMatrix& x, cudaStream_t stream);

// Enqueues x := conj(x) for a complex x.
cudaError_t LaunchConjugate(const AnyMatrix& x, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_CONVERT_H_
