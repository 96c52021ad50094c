// SPDX-License-Identifier: Apache-2.0

// Row and column scales of LAPACK's geequb, and column scales of right-hand sides.
#ifndef CROUT_KERNELS_CUDA_OPS_EQUILIBRATION_H_
#define CROUT_KERNELS_CUDA_OPS_EQUILIBRATION_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/ops/reduction_scratch.h"
#include "kernels/matrix_ops.h"
#include "kernels/sparse_view.h"

namespace crout::cuda {

// Enqueues row[i], col[j] := powers of two as specified by MatrixOps::EquilibrationScales, and
// *report := their statistics, in memory that host and device can access. Two launches.
cudaError_t LaunchEquilibrationScales(const AnyMatrix& a, double* row, double* col,
                                      ReductionScratch* scratch, ScaleStats* report,
                                      cudaStream_t stream);

cudaError_t LaunchEquilibrationScales(const AnySparse& a, double* row, double* col,
                                      ReductionScratch* scratch, ScaleStats* report,
                                      cudaStream_t stream);

// Enqueues down[j], up[j] := powers of two as specified by MatrixOps::ColumnScales. `in` is in
// float64 or complex128.
cudaError_t LaunchColumnScales(const AnyMatrix& in, const double* row, int exponent, double* down,
                               double* up, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_EQUILIBRATION_H_
