// SPDX-License-Identifier: Apache-2.0

// Row interchanges in irregular batches.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_IRR_LASWP_H_
#define CROUT_KERNELS_CUDA_IRR_LU_IRR_LASWP_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/irr_lu/irr_matrix.h"

namespace crout::cuda {

// In columns [a.col, a.col + n) of each member, exchanges row k with row ipiv[k] - 1 for k in
// [begin, end), or in reverse order if `backward`. Rows are counted from the member's first row,
// and a.row is 0. `ipiv` is the batch's array (BatchFactors), 1-based. A member has min(rows, cols)
// of its elements, with rows and cols from `pivots`. `pivots` may describe another batch than a's:
// a matrix's pivots apply to its right-hand sides.
template <class T>
struct IrrLaswp {
  bool backward = false;
  int begin = 0, end = 0;
  int n = 0;
  const int64_t* ipiv = nullptr;
  const BatchMember* pivots = nullptr;
  IrrMatrix<T> a;
};

// Enqueues the interchanges of the members, 32 at a time. The kernel first computes the combined
// permutation from ipiv alone ("rehearsed" interchanges), then moves each row once. Needs no
// workspace.
template <class T>
cudaError_t LaunchIrrLaswp(const IrrLaswp<T>& laswp, const IrrMembers& members,
                           cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_IRR_LASWP_H_
