// Factorizations of members that are too large for one block of threads each.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_GRID_LU_H_
#define CROUT_KERNELS_CUDA_IRR_LU_GRID_LU_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/irr_lu/irr_order.h"
#include "kernels/cuda/irr_lu/lu_kernels.h"

namespace crout::cuda {

// Enqueues the factorization of the members that `parts` gives to MemberTeam::kGrid, of which
// `order` begins with: of columns cut in two, again and again, down to what LaunchIrrGetf2 does at
// once, by interchanges, triangular solves and products of all members. The cuts are where
// LaunchIrrTrsm's are. A launch is for the members that reach to its columns.
template <class T>
cudaError_t LaunchGridLu(const IrrLuBatch<T>& batch, const IrrOrder& parts, const int32_t* order,
                         cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_GRID_LU_H_
