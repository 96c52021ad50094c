// SPDX-License-Identifier: Apache-2.0

// LU factorization of an irregular batch on a GPU, solves with its factors, and the probe of their
// quality.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_IRR_LU_H_
#define CROUT_KERNELS_CUDA_IRR_LU_IRR_LU_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "kernels/cuda/device/device_limits.h"
#include "kernels/cuda/irr_lu/irr_matrix.h"
#include "kernels/cuda/irr_lu/irr_order.h"
#include "kernels/irregular_batch.h"
#include "kernels/matrix.h"

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

// Enqueues op(A_i) X_i = B_i for the members of a batch, with the factors that IrrGetrf left in
// `lu` and `factors`. Member i of `b` is B_i on entry and X_i on exit. It has `lu`'s type, as many
// rows as A_i, and its own number of columns. A_i must be square if B_i has columns. If A_i is
// singular (factors.info), X_i is NaN. Does not allocate or wait.
//
// All arrays are in the memory of the current device. `order` and `parts` are those of IrrGetrf,
// for the members of `lu`. Nothing is checked, because the members may be in memory that the host
// cannot read. The bits of a column of X_i depend neither on other members nor on other columns.
absl::Status IrrGetrs(Op op, const IrregularBatch& lu, const BatchFactors& factors,
                      const IrregularBatch& b, const IrrOrder& parts, const int32_t* order,
                      const DeviceLimits& limits, cudaStream_t stream);

// Computes the probe of numerics/factor_probe.h for all members: call Start before IrrGetrf and
// Finish after it. Does not allocate or wait.

// Returns the bytes of workspace that the probe needs, and sets places[i] to the byte offset of
// member i's part. Runs on the host.
size_t PlaceIrrProbe(DType dtype, std::span<const BatchMember> members, std::span<int64_t> places);

// The arguments common to Start and Finish, in the memory of the current device. `workspace` has
// cudaMalloc's alignment; `places` is the output of PlaceIrrProbe.
struct IrrProbe {
  std::byte* workspace = nullptr;
  const int64_t* places = nullptr;
  IrrMembers large;  // members too large for a block of threads; the first of IrrOrder
};

// Enqueues the part of the probe that reads A.
cudaError_t LaunchIrrProbeStart(const IrregularBatch& a, const IrrProbe& probe,
                                cudaStream_t stream);

// Enqueues the computation of factors.pivot_growth and factors.quality from the factors of A and
// from factors.ipiv.
cudaError_t LaunchIrrProbeFinish(const IrregularBatch& lu, const BatchFactors& factors,
                                 const IrrProbe& probe, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_IRR_LU_H_
