// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/irr_lu/irr_getrs.h"

#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/irr_lu/grid_solve.h"
#include "kernels/cuda/irr_lu/solve_kernels.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {

absl::Status IrrGetrs(Op op, const IrregularBatch& lu, const BatchFactors& factors,
                      const IrregularBatch& b, const IrrOrder& parts, const int32_t* order,
                      const DeviceLimits& limits, cudaStream_t stream) {
  return DispatchDevice(lu.extent.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const IrrSolveBatch<T> batch = {
        reinterpret_cast<const T*>(lu.data), lu.members, factors.ipiv, factors.info,
        reinterpret_cast<T*>(b.data),        b.members};
    CROUT_RETURN_IF_CUDA_ERROR(LaunchGridSolve(batch, op, b.extent.max_cols, parts,
                                               order + parts.First(MemberTeam::kGrid), stream));
    bool overlap = false;  // with the previous launch, for other members
    for (const MemberTeam team :
         {MemberTeam::kBlock512, MemberTeam::kBlock256, MemberTeam::kBlock128, MemberTeam::kWarp}) {
      const int32_t count = parts.Count(team);
      if (count == 0) continue;
      CROUT_RETURN_IF_CUDA_ERROR(
          LaunchMemberSolve(batch, op, team, order + parts.First(team), count, overlap, stream));
      overlap = limits.dependent_launch;
    }
    return absl::OkStatus();
  });
}

}  // namespace crout::cuda
