// SPDX-License-Identifier: Apache-2.0

// Matrix products on irregular batches.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_IRR_GEMM_H_
#define CROUT_KERNELS_CUDA_IRR_LU_IRR_GEMM_H_

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

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_IRR_GEMM_H_
