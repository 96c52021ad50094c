// SPDX-License-Identifier: Apache-2.0

// Matrix products, triangular solves and row interchanges on irregular batches.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_IRR_BLAS_H_
#define CROUT_KERNELS_CUDA_IRR_LU_IRR_BLAS_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/irr_lu/irr_matrix.h"

namespace crout::cuda {

// C := alpha op(A) op(B) + beta C. The largest product is m x n with k terms per element. A
// member's m is limited by its C and op(A), its n by C and op(B), and its k by op(A) and op(B).
// With k = 0, C := beta C. With beta = 0, C is not read. C must not overlap A or B. T: real, or
// Complex.
template <class T>
struct IrrGemm {
  Op op_a = Op::kNone;
  Op op_b = Op::kNone;
  int m = 0, n = 0, k = 0;
  T alpha{1};
  IrrMatrix<const T> a;
  IrrMatrix<const T> b;
  T beta{0};
  IrrMatrix<T> c;
};

// Enqueues the products of the members. They run on the tensor cores and sum from the first term to
// the last in the accuracy of T, so an element has the same bits in any batch.
template <class T>
cudaError_t LaunchIrrGemm(const IrrGemm<T>& gemm, const IrrMembers& members, cudaStream_t stream);

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

#endif  // CROUT_KERNELS_CUDA_IRR_LU_IRR_BLAS_H_
