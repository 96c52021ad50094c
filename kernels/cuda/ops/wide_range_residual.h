// SPDX-License-Identifier: Apache-2.0

// Residuals of systems whose numbers are near the limits of float64's range.
#ifndef CROUT_KERNELS_CUDA_OPS_WIDE_RANGE_RESIDUAL_H_
#define CROUT_KERNELS_CUDA_OPS_WIDE_RANGE_RESIDUAL_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/ops/reduction_scratch.h"
#include "kernels/matrix_ops.h"
#include "kernels/sparse_view.h"

namespace crout::cuda {

// Enqueues r := b - op(a) x and *report := its figures, in memory that host and device can access,
// as specified by MatrixOps::WideRangeResidual. Two launches, with one block per row of op(a).
cudaError_t LaunchWideRangeResidual(const AnyMatrix& a, Op op, const AnyMatrix& x,
                                    const AnyMatrix& b, const AnyMatrix& r,
                                    ReductionScratch* scratch, ResidualStats* report,
                                    cudaStream_t stream);

cudaError_t LaunchWideRangeResidual(const AnySparse& a, Op op, const AnyMatrix& x,
                                    const AnyMatrix& b, const AnyMatrix& r,
                                    ReductionScratch* scratch, ResidualStats* report,
                                    cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_WIDE_RANGE_RESIDUAL_H_
