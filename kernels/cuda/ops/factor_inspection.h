// SPDX-License-Identifier: Apache-2.0

// Pivot growth and determinant of a factor, and the last step of its probe.
#ifndef CROUT_KERNELS_CUDA_OPS_FACTOR_INSPECTION_H_
#define CROUT_KERNELS_CUDA_OPS_FACTOR_INSPECTION_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/ops/reduction_scratch.h"
#include "kernels/matrix_ops.h"

namespace crout::cuda {

// Enqueues *report := the FactorStats of `lu` as specified by MatrixOps::InspectFactor, in memory
// that host and device can access. One launch. `probe` is empty, or has the products of A and L.
cudaError_t LaunchInspectFactor(const AnyMatrix& lu, bool unit_in_u, const int64_t* ipiv,
                                const FactorProbe& probe, ReductionScratch* scratch,
                                FactorStats* report, cudaStream_t stream);

// Enqueues the figures of MatrixOps::InspectPivots in *report. One launch.
cudaError_t LaunchInspectPivots(const AnyMatrix& lu, FactorStats* report, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_FACTOR_INSPECTION_H_
