// The matrix products of a blocked factorization, which a halt turns into nothing.
#ifndef CROUT_KERNELS_CUDA_BLOCKED_LU_PRODUCT_H_
#define CROUT_KERNELS_CUDA_BLOCKED_LU_PRODUCT_H_

#include <cublas_v2.h>

#include <type_traits>

#include "absl/status/status.h"
#include "kernels/cuda/blocked/lu_control.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/matrix.h"

namespace crout::cuda {

// While one lives, the handle reads its scalars from device memory.
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

// Enqueues c := c - a b, or nothing once `control` has halted. The handle has DeviceScalars; shapes
// fit; an empty product is nothing to do.
template <class T>
absl::Status SubtractLuProduct(cublasHandle_t handle, const LuControl<T>& control,
                               const MatrixView<T>& a, const MatrixView<T>& b,
                               const MatrixView<T>& c) {
  if (c.rows == 0 || c.cols == 0 || a.cols == 0) return absl::OkStatus();
  constexpr auto kNo = CUBLAS_OP_N;
  if constexpr (std::is_same_v<T, float>) {
    return CublasStatus(cublasSgemm_64(handle, kNo, kNo, c.rows, c.cols, a.cols, &control.minus_one,
                                       a.data, a.ld, b.data, b.ld, &control.one, c.data, c.ld),
                        "cublasSgemm");
  } else {
    return CublasStatus(cublasDgemm_64(handle, kNo, kNo, c.rows, c.cols, a.cols, &control.minus_one,
                                       a.data, a.ld, b.data, b.ld, &control.one, c.data, c.ld),
                        "cublasDgemm");
  }
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_BLOCKED_LU_PRODUCT_H_
