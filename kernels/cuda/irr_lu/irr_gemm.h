// Matrix products on irregular batches.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_IRR_GEMM_H_
#define CROUT_KERNELS_CUDA_IRR_LU_IRR_GEMM_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/irr_lu/irr_matrix.h"

namespace crout::cuda {

// C := alpha op(A) op(B) + beta C, of which the largest is m x n with k terms for each element. A
// member's m is what C and op(A) have of it, its n what C and op(B) have, and its k what op(A) and
// op(B) have; with k = 0, C := beta C. C may overlap neither A nor B. With beta = 0, C is not read.
// T: real, or Complex.
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

// Enqueues the products of the members. On the tensor cores, summed from the first term to the last
// in the accuracy of T: an element has the same bits in any batch.
template <class T>
cudaError_t LaunchIrrGemm(const IrrGemm<T>& gemm, const IrrMembers& members, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_IRR_GEMM_H_
