// SPDX-License-Identifier: Apache-2.0

// Sparse LU by NVIDIA's cuDSS, in its deterministic mode.
#ifndef CROUT_KERNELS_CUDA_CUDSS_CUDSS_H_
#define CROUT_KERNELS_CUDA_CUDSS_CUDSS_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/cudss/factors.h"
#include "kernels/cuda/cudss/handle.h"
#include "kernels/cuda/device/cuda_context.h"
#include "kernels/matrix.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse/multifrontal_factor.h"
#include "kernels/sparse_view.h"
#include "kernels/stop_requested.h"

namespace crout::cuda {

// Bytes of a factor's block: A by rows, and the memory that cuDSS will use according to the fill-in
// that `analysis` predicts. cuDSS reports its own estimate only after it has analyzed the matrix
// again.
size_t CudssFactorBytes(const Analysis& analysis, DType dtype);

// Factors `a`, in device memory, into `factor`, whose block is allocated and otherwise empty. Uses
// cuDSS's own ordering, or that of `last`, a factor of the same analysis and type, unless it is
// null. Uses cuDSS's matching and scaling if the analysis has a matching. All device memory that
// cuDSS uses lies in the block. `stop` is checked between phases. Blocks until the device is done.
//
// Returns the statuses of SparseLu::Factor. RESOURCE_EXHAUSTED: the block is too small, and
// factor.sufficient_bytes is a sufficient size. UNIMPLEMENTED: cuDSS does not support the request.
//
// Pivots that are too small, including those of a singular matrix, are perturbed and counted. cuDSS
// reports neither pivot growth (returned as 0) nor interchanges, nor which pivots it perturbed.
absl::StatusOr<NumericSummary> FactorCudss(Context& context, CudssHandle& handle,
                                           const Analysis& analysis, const AnySparse& a,
                                           DType dtype, CudssFactor* last, CudssFactor& factor,
                                           StopRequested stop);

// Enqueues b := op(A)^-1 b without refinement, column by column, for b of n x k in the factor's
// type. `workspace` holds one column of b. cuDSS work on one device is serialized, whatever thread
// enqueues it. FAILED_PRECONDITION: `factor` is empty.
absl::Status SolveCudss(Context& context, CudssFactor& factor, const Analysis& analysis, Op op,
                        const AnyMatrix& b, std::span<std::byte> workspace);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CUDSS_CUDSS_H_
