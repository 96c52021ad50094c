// SPDX-License-Identifier: Apache-2.0

// Pivot growth and quality of the factors of an irregular batch on a GPU.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_IRR_PROBE_H_
#define CROUT_KERNELS_CUDA_IRR_LU_IRR_PROBE_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda/irr_lu/irr_matrix.h"
#include "kernels/irr_lu.h"
#include "kernels/irregular_batch.h"

namespace crout::cuda {

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

#endif  // CROUT_KERNELS_CUDA_IRR_LU_IRR_PROBE_H_
