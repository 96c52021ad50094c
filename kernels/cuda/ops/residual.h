// SPDX-License-Identifier: Apache-2.0

// Residuals, their componentwise scale, and the backward error.
#ifndef CROUT_KERNELS_CUDA_OPS_RESIDUAL_H_
#define CROUT_KERNELS_CUDA_OPS_RESIDUAL_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/ops/reduction_scratch.h"
#include "kernels/matrix_ops.h"
#include "kernels/sparse_view.h"

namespace crout::cuda {

// Vectors and products are in float64, or in complex128 if the matrix is complex.

// Enqueues r := b - op(a) x. Reads `a` once per four columns of x, so a few columns take the time
// of reading `a`.
cudaError_t LaunchResidual(const AnyMatrix& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                           const AnyMatrix& r, cudaStream_t stream);

// Enqueues w := |b| + |op(a)| |x| in the same way, with |Re| + |Im| for complex numbers.
cudaError_t LaunchAbsProduct(const AnyMatrix& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                             const MatrixView<double>& w, cudaStream_t stream);

// The same for a sparse matrix, which is also read once per four columns.
cudaError_t LaunchResidual(const AnySparse& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                           const AnyMatrix& r, cudaStream_t stream);
cudaError_t LaunchAbsProduct(const AnySparse& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                             const MatrixView<double>& w, cudaStream_t stream);

// Enqueues *report := the backward error of x with the residual r, in memory that host and device
// can access. `add_rhs`: r holds -op(a) x on entry, and the residual on exit.
cudaError_t LaunchBackwardError(double norm_op_a, const AnyMatrix& x, const AnyMatrix& b,
                                const AnyMatrix& r, bool add_rhs, ReductionScratch* scratch,
                                ResidualStats* report, cudaStream_t stream);

// Enqueues report->componentwise_error := the result that MatrixOps::ComponentwiseError specifies.
cudaError_t LaunchComponentwiseError(const AnyMatrix& r, const MatrixView<double>& w,
                                     ReductionScratch* scratch, ResidualStats* report,
                                     cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_RESIDUAL_H_
