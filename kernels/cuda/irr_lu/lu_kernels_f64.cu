// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/irr_lu/lu_kernels.cuh"

namespace crout::cuda {

template cudaError_t LaunchMemberLu(const IrrLuBatch<double>&, MemberTeam, const int32_t*, int,
                                    bool, cudaStream_t);

template cudaError_t LaunchIrrGetf2(const IrrLuBatch<double>&, int, const IrrMembers&,
                                    cudaStream_t);

}  // namespace crout::cuda
