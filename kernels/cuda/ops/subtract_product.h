// SPDX-License-Identifier: Apache-2.0

// C := C - A B by cuBLAS.
#ifndef CROUT_KERNELS_CUDA_OPS_SUBTRACT_PRODUCT_H_
#define CROUT_KERNELS_CUDA_OPS_SUBTRACT_PRODUCT_H_

#include <cublas_v2.h>

#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/ops/blas.h"
#include "kernels/matrix.h"

namespace crout::cuda {

// c := c - op(a) b on the handle's stream. Shapes must match; an empty product is a no-op.
template <class T>
absl::Status SubtractProduct(cublasHandle_t handle, Op op, const MatrixView<const T>& a,
                             const MatrixView<const T>& b, const MatrixView<T>& c) {
  if (c.rows == 0 || c.cols == 0 || b.rows == 0) return absl::OkStatus();
  const T minus_one = -1;
  const T one = 1;
  return CublasStatus(Gemm(handle, op, &minus_one, a, b, &one, c), "cublasXgemm");
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_SUBTRACT_PRODUCT_H_
