// SPDX-License-Identifier: Apache-2.0

// Triangular solves on irregular batches.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_IRR_TRSM_H_
#define CROUT_KERNELS_CUDA_IRR_LU_IRR_TRSM_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/irr_lu/irr_matrix.h"

namespace crout::cuda {

// B := op(T)^-1 B. The largest solve is m x n. The number of rows of a member's B is the member's
// order; T has at least as many rows and columns, unless B has no columns. T is the triangle that
// `lower` selects; the other triangle is not read, nor is a unit diagonal. T: real, or Complex.
template <class T>
struct IrrTrsm {
  Op op = Op::kNone;
  bool lower = true;
  bool unit = true;
  int m = 0, n = 0;
  IrrMatrix<const T> t;
  IrrMatrix<T> b;
};

// Enqueues the solves of the members, in place and without a workspace. The recursion solves with
// one half of T, updates by a product, and solves with the other half, down to triangles that a
// block of threads handles. T is cut at powers of two times the leaf size, whatever the largest
// order is, so an element has the same bits in any batch.
template <class T>
cudaError_t LaunchIrrTrsm(const IrrTrsm<T>& trsm, const IrrMembers& members, cudaStream_t stream);

// B := B U^-1. The largest solve is m x n. The number of columns of a member's B is the member's
// order n; U has at least as many rows and columns, unless B has no rows. U is the upper triangle
// with its diagonal. T: real, or Complex.
template <class T>
struct IrrTrsmFromRight {
  int m = 0, n = 0;
  IrrMatrix<const T> u;
  IrrMatrix<T> b;
};

// Enqueues these solves like LaunchIrrTrsm, with the same cuts.
template <class T>
cudaError_t LaunchIrrTrsmFromRight(const IrrTrsmFromRight<T>& trsm, const IrrMembers& members,
                                   cudaStream_t stream);

// The position of the cut in a range of more than `leaf` rows or columns: the largest power of two
// times `leaf` that is less than `order`.
constexpr int CutOf(int order, int leaf) {
  int cut = leaf;
  while (2 * cut < order) cut *= 2;
  return cut;
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_IRR_TRSM_H_
