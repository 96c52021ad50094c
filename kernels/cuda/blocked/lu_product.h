// SPDX-License-Identifier: Apache-2.0

// The matrix products of a blocked factorization; no-ops once it has halted.
#ifndef CROUT_KERNELS_CUDA_BLOCKED_LU_PRODUCT_H_
#define CROUT_KERNELS_CUDA_BLOCKED_LU_PRODUCT_H_

#include <cublas_v2.h>

#include "absl/status/status.h"
#include "kernels/cuda/blocked/lu_control.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/ops/blas.h"
#include "kernels/matrix.h"

namespace crout::cuda {

// While an object of this class lives, cuBLAS reads alpha and beta of calls with the handle from
// device memory; otherwise from host memory.
class DeviceScalars {
 public:
  explicit DeviceScalars(cublasHandle_t handle) : handle_(handle) {
    (void)cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE);
  }
  ~DeviceScalars() { (void)cublasSetPointerMode(handle_, CUBLAS_POINTER_MODE_HOST); }
  DeviceScalars(const DeviceScalars&) = delete;
  DeviceScalars& operator=(const DeviceScalars&) = delete;

 private:
  const cublasHandle_t handle_;
};

// Enqueues c := c - a b. No-op once `control` has halted, or if the product is empty. The handle
// has DeviceScalars. Shapes must match.
template <class T>
absl::Status SubtractLuProduct(cublasHandle_t handle, const LuControl<T>& control,
                               const MatrixView<T>& a, const MatrixView<T>& b,
                               const MatrixView<T>& c) {
  if (c.rows == 0 || c.cols == 0 || a.cols == 0) return absl::OkStatus();
  return CublasStatus(Gemm<T>(handle, Op::kNone, &control.minus_one, {a.data, a.rows, a.cols, a.ld},
                              {b.data, b.rows, b.cols, b.ld}, &control.one, c),
                      "cublasXgemm");
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_BLOCKED_LU_PRODUCT_H_
