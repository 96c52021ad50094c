// C := C - A B by cuBLAS.
#ifndef CROUT_KERNELS_CUDA_OPS_SUBTRACT_PRODUCT_H_
#define CROUT_KERNELS_CUDA_OPS_SUBTRACT_PRODUCT_H_

#include <cublas_v2.h>

#include <type_traits>

#include "kernels/cuda/device/cuda_status.h"
#include "kernels/matrix.h"

namespace crout::cuda {

// c := c - op(a) b on the handle's stream. Shapes fit; an empty product is nothing to do.
template <class T>
absl::Status SubtractProduct(cublasHandle_t handle, Op op, const MatrixView<const T>& a,
                             const MatrixView<const T>& b, const MatrixView<T>& c) {
  if (c.rows == 0 || c.cols == 0 || b.rows == 0) return absl::OkStatus();
  const T minus_one = -1;
  const T one = 1;
  const cublasOperation_t op_a = op == Op::kNone ? CUBLAS_OP_N : CUBLAS_OP_T;
  if constexpr (std::is_same_v<T, float>) {
    return CublasStatus(cublasSgemm_64(handle, op_a, CUBLAS_OP_N, c.rows, c.cols, b.rows,
                                       &minus_one, a.data, a.ld, b.data, b.ld, &one, c.data, c.ld),
                        "cublasSgemm");
  } else {
    return CublasStatus(cublasDgemm_64(handle, op_a, CUBLAS_OP_N, c.rows, c.cols, b.rows,
                                       &minus_one, a.data, a.ld, b.data, b.ld, &one, c.data, c.ld),
                        "cublasDgemm");
  }
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_SUBTRACT_PRODUCT_H_
