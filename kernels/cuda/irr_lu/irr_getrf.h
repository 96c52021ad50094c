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

// Enqueues the factorization of every member that a team works on in place, PA = LU with partial
// pivoting, the unit diagonal in L (which is not stored), and what becomes of factors.ipiv and
// factors.info; the other figures are left as they are. For members of any shape, and empty ones.
// Nothing is allocated and nothing waits.
//
// All arrays are in the memory of the current device. `order`: what OrderMembers wrote, `parts`
// what it returned, for the same members. Members of up to 32 rows and columns are factored by a
// warp each, in registers, those of up to 1024 by a block of threads each, and larger ones by the
// building blocks beside this (irr_gemm, irr_trsm, irr_laswp, irr_getf2). How depends on a member's
// own size: its results have the same bits in any batch. A NaN is a pivot as soon as it is a
// candidate. A singular member, or one that holds NaN or Inf, is the affair of its own results.
absl::Status IrrGetrf(const IrregularBatch& a, const BatchFactors& factors, const IrrOrder& parts,
                      const int32_t* order, const DeviceLimits& limits, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_IRR_GETRF_H_
