// Residuals, their componentwise scale, and the backward error.
#ifndef CROUT_KERNELS_CUDA_OPS_RESIDUAL_H_
#define CROUT_KERNELS_CUDA_OPS_RESIDUAL_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/ops/reduction_scratch.h"
#include "kernels/matrix_ops.h"
#include "kernels/sparse_view.h"

namespace crout::cuda {

// Vectors are in float64, or complex128 where the matrix is complex, as the products are.

// Enqueues r := b - op(a) x. Reads `a` once for every four columns of x: at the memory's speed for
// few of them.
cudaError_t LaunchResidual(const AnyMatrix& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                           const AnyMatrix& r, cudaStream_t stream);

// Enqueues w := |b| + |op(a)| |x| the same way, |Re| + |Im| of complex numbers.
cudaError_t LaunchAbsProduct(const AnyMatrix& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                             const MatrixView<double>& w, cudaStream_t stream);

// The same of a sparse matrix, which is read once for every four columns too.
cudaError_t LaunchResidual(const AnySparse& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                           const AnyMatrix& r, cudaStream_t stream);
cudaError_t LaunchAbsProduct(const AnySparse& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                             const MatrixView<double>& w, cudaStream_t stream);

// Enqueues *report := the backward error of x with the residual r, in memory that both sides see.
// `add_rhs`: r holds -op(a) x, and becomes the residual.
cudaError_t LaunchBackwardError(double norm_op_a, const AnyMatrix& x, const AnyMatrix& b,
                                const AnyMatrix& r, bool add_rhs, ReductionScratch* scratch,
                                ResidualStats* report, cudaStream_t stream);

// Enqueues report->componentwise_error := what MatrixOps::ComponentwiseError says.
cudaError_t LaunchComponentwiseError(const AnyMatrix& r, const MatrixView<double>& w,
                                     ReductionScratch* scratch, ResidualStats* report,
                                     cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_RESIDUAL_H_
