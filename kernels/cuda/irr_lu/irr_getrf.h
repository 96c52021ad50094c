// SPDX-License-Identifier: Apache-2.0

// LU factorization of an irregular batch on a GPU.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_IRR_GETRF_H_
#define CROUT_KERNELS_CUDA_IRR_LU_IRR_GETRF_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "kernels/cuda/device/device_limits.h"
#include "kernels/cuda/irr_lu/irr_order.h"
#include "kernels/irr_lu.h"
#include "kernels/irregular_batch.h"

namespace crout::cuda {

// Enqueues the in-place factorization of every member that belongs to a team: PA = LU with partial
// pivoting and the unit diagonal in L (not stored). Also enqueues the results in factors.ipiv and
// factors.info; the other figures are not modified. Members may have any shape and may be empty.
// Does not allocate or wait.
//
// All arrays are in the memory of the current device. `order` is the output of OrderMembers and
// `parts` its result, for the same members. One warp factors a member of up to 32 rows and columns,
// in registers. One block of threads factors a member of up to 1024. The building blocks in this
// folder (irr_gemm, irr_trsm, irr_laswp, irr_getf2) factor larger ones. The algorithm depends on a
// member's own size only, so its results have the same bits in any batch. A NaN becomes the pivot
// as soon as it is a candidate. A member that is singular or contains NaN or Inf affects only its
// own results.
absl::Status IrrGetrf(const IrregularBatch& a, const BatchFactors& factors, const IrrOrder& parts,
                      const int32_t* order, const DeviceLimits& limits, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_IRR_GETRF_H_
