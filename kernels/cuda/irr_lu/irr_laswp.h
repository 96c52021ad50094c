// Interchanges of rows in irregular batches.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_IRR_LASWP_H_
#define CROUT_KERNELS_CUDA_IRR_LU_IRR_LASWP_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/irr_lu/irr_matrix.h"

namespace crout::cuda {

// In columns [a.col, a.col + n) of each member: exchanges row k with row ipiv[k] - 1 for the rows k
// from `begin` to `end`, or with kBackward from the last to the first. Rows are the members' own,
// and a.row is 0. ipiv: the batch's (BatchFactors), 1-based; a member has those of its
// min(rows, cols) in `pivots`, which may be another batch's than a's: those of a matrix, for its
// right-hand sides.
template <class T>
struct IrrLaswp {
  bool backward = false;
  int begin = 0, end = 0;
  int n = 0;
  const int64_t* ipiv = nullptr;
  const BatchMember* pivots = nullptr;
  IrrMatrix<T> a;
};

// Enqueues the interchanges of the members, by 32 at a time: what they amount to is found without
// the rows ("rehearsed"), which are then moved once. Without a workspace.
template <class T>
cudaError_t LaunchIrrLaswp(const IrrLaswp<T>& laswp, const IrrMembers& members,
                           cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_IRR_LASWP_H_
