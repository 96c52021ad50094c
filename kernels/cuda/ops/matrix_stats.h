// SPDX-License-Identifier: Apache-2.0

// Norms and invalid entries of a packed matrix.
#ifndef CROUT_KERNELS_CUDA_OPS_MATRIX_STATS_H_
#define CROUT_KERNELS_CUDA_OPS_MATRIX_STATS_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/ops/reduction_scratch.h"
#include "kernels/matrix_ops.h"
#include "kernels/sparse_view.h"

namespace crout::cuda {

// Enqueues *report := the MatrixStats of `in`, whose elements will be converted to `target`.
// `report` is memory that host and device can access. One launch.
cudaError_t LaunchMatrixStats(const PackedMatrix& in, DType target, ReductionScratch* scratch,
                              MatrixStats* report, cudaStream_t stream);

// The same for a sparse matrix. The bits are those of its dense form, packed by columns.
cudaError_t LaunchMatrixStats(const AnySparse& in, DType target, ReductionScratch* scratch,
                              MatrixStats* report, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_MATRIX_STATS_H_
