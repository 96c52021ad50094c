// Growth and quality of the factors of an irregular batch on a GPU.
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

// The probe of numerics/factor_probe.h for all members: Start before IrrGetrf, Finish after it.
// Nothing is allocated and nothing waits.

// Bytes of workspace that the probe needs; places[i] := where member i's part of it begins, in
// bytes. On the host.
size_t PlaceIrrProbe(DType dtype, std::span<const BatchMember> members, std::span<int64_t> places);

// What the two have in common, in the memory of the current device: `workspace` is aligned as
// cudaMalloc's, `places` what PlaceIrrProbe wrote.
struct IrrProbe {
  std::byte* workspace = nullptr;
  const int64_t* places = nullptr;
  IrrMembers large;  // that are beyond a block of threads: IrrOrder's first
};

// Enqueues the reading of A.
cudaError_t LaunchIrrProbeStart(const IrregularBatch& a, const IrrProbe& probe,
                                cudaStream_t stream);

// Enqueues what becomes of factors.pivot_growth and factors.quality, from what A became since and
// from factors.ipiv.
cudaError_t LaunchIrrProbeFinish(const IrregularBatch& lu, const BatchFactors& factors,
                                 const IrrProbe& probe, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_IRR_PROBE_H_
