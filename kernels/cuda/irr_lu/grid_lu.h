// SPDX-License-Identifier: Apache-2.0

// LU factorization of members that are too large for one block of threads each, and solves with
// their factors.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_GRID_LU_H_
#define CROUT_KERNELS_CUDA_IRR_LU_GRID_LU_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/irr_lu/irr_order.h"
#include "kernels/cuda/irr_lu/lu_kernels.h"
#include "kernels/cuda/irr_lu/solve_kernels.h"

namespace crout::cuda {

// Enqueues the factorization of the members of MemberTeam::kGrid in `parts`, which come first in
// `order`. The columns are halved recursively down to the width of LaunchIrrGetf2. Interchanges,
// triangular solves and products process all members together. The cuts are at the same columns as
// LaunchIrrTrsm's. Each launch covers only the members that extend to its columns.
template <class T>
cudaError_t LaunchGridLu(const IrrLuBatch<T>& batch, const IrrOrder& parts, const int32_t* order,
                         cudaStream_t stream);

// Enqueues the solves with op(A) of the members of MemberTeam::kGrid in `parts`, which come first
// in `order`. Interchanges and triangular solves process all members together. `columns`: the
// largest number of right-hand sides of a member. If A is singular, X is NaN.
template <class T>
cudaError_t LaunchGridSolve(const IrrSolveBatch<T>& batch, Op op, int columns,
                            const IrrOrder& parts, const int32_t* order, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_GRID_LU_H_
