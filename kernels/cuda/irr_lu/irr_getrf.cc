// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/irr_lu/irr_getrf.h"

#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/irr_lu/grid_lu.h"
#include "kernels/cuda/irr_lu/lu_kernels.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {

absl::Status IrrGetrf(const IrregularBatch& a, const BatchFactors& factors, const IrrOrder& parts,
                      const int32_t* order, const DeviceLimits& limits, cudaStream_t stream) {
  return DispatchDevice(a.extent.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const IrrLuBatch<T> batch = {
        reinterpret_cast<T*>(a.data), a.members, factors.ipiv, factors.info, {}};
    CROUT_RETURN_IF_CUDA_ERROR(
        LaunchGridLu(batch, parts, order + parts.First(MemberTeam::kGrid), stream));
    bool overlap = false;  // with the previous launch, for other members
    for (const MemberTeam team :
         {MemberTeam::kBlock512, MemberTeam::kBlock256, MemberTeam::kBlock128, MemberTeam::kWarp}) {
      const int32_t count = parts.Count(team);
      if (count == 0) continue;
      CROUT_RETURN_IF_CUDA_ERROR(
          LaunchMemberLu(batch, team, order + parts.First(team), count, overlap, stream));
      overlap = limits.dependent_launch;
    }
    return absl::OkStatus();
  });
}

}  // namespace crout::cuda
