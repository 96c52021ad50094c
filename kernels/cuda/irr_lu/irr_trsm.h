// Triangular solves on irregular batches.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_IRR_TRSM_H_
#define CROUT_KERNELS_CUDA_IRR_LU_IRR_TRSM_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/irr_lu/irr_matrix.h"

namespace crout::cuda {

// B := op(T)^-1 B, of which the largest is m x n. A member's order is what B has of it, of rows; T
// has as many rows and columns, or B no columns. T: a triangle, of which the other one is not read,
// nor a unit diagonal; `lower` says which one is stored. T: real, or Complex.
template <class T>
struct IrrTrsm {
  Op op = Op::kNone;
  bool lower = true;
  bool unit = true;
  int m = 0, n = 0;
  IrrMatrix<const T> t;
  IrrMatrix<T> b;
};

// Enqueues the solves of the members, in place and without a workspace: halves of T one after the
// other and a product between them, and so on down to triangles that a block of threads solves
// with. T is cut where powers of two times those lie, whatever the largest order is: an element has
// the same bits in any batch.
template <class T>
cudaError_t LaunchIrrTrsm(const IrrTrsm<T>& trsm, const IrrMembers& members, cudaStream_t stream);

// B := B U^-1, of which the largest is m x n: a member's order n is what B has of it, of columns; U
// has as many rows and columns, or B no rows. U: the upper triangle with its diagonal. T: real, or
// Complex.
template <class T>
struct IrrTrsmFromRight {
  int m = 0, n = 0;
  IrrMatrix<const T> u;
  IrrMatrix<T> b;
};

// Enqueues these solves as the others are, cut likewise.
template <class T>
cudaError_t LaunchIrrTrsmFromRight(const IrrTrsmFromRight<T>& trsm, const IrrMembers& members,
                                   cudaStream_t stream);

// The largest power of two times `leaf` that is below `order`: where a range of more than `leaf`
// rows or columns is cut.
constexpr int CutOf(int order, int leaf) {
  int cut = leaf;
  while (2 * cut < order) cut *= 2;
  return cut;
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_IRR_TRSM_H_
