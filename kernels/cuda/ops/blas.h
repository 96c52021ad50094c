// SPDX-License-Identifier: Apache-2.0

// cuBLAS level 3 on views, for all four types as kernels use them (DeviceType). Calls enqueue on
// the handle's stream; the handle's pointer mode determines where the scalars are. Shapes must
// match.
#ifndef CROUT_KERNELS_CUDA_OPS_BLAS_H_
#define CROUT_KERNELS_CUDA_OPS_BLAS_H_

#include <cublas_v2.h>

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/matrix.h"

namespace crout::cuda {

constexpr cublasOperation_t BlasOp(Op op) {
  switch (op) {
    case Op::kTranspose:
      return CUBLAS_OP_T;
    case Op::kConjugateTranspose:
      return CUBLAS_OP_C;
    case Op::kNone:
      break;
  }
  return CUBLAS_OP_N;
}

// Calls f with the cuBLAS routine for T, out of these four, and with the TypeTag of cuBLAS's type
// for T.
template <class T, class S, class D, class C, class Z, class F>
cublasStatus_t CallBlas(S s, D d, C c, Z z, F f) {
  constexpr DType kType = kDTypeOf<T>;
  if constexpr (kType == DType::kFloat32) return f(s, TypeTag<float>{});
  if constexpr (kType == DType::kFloat64) return f(d, TypeTag<double>{});
  if constexpr (kType == DType::kComplex64) return f(c, TypeTag<cuComplex>{});
  if constexpr (kType == DType::kComplex128) return f(z, TypeTag<cuDoubleComplex>{});
}

// c := alpha op(a) b + beta c.
template <class T>
cublasStatus_t Gemm(cublasHandle_t handle, Op op, const T* alpha, const MatrixView<const T>& a,
                    const MatrixView<const T>& b, const T* beta, const MatrixView<T>& c) {
  return CallBlas<T>(
      cublasSgemm_64, cublasDgemm_64, cublasCgemm_64, cublasZgemm_64, [&](auto gemm, auto tag) {
        using Blas = typename decltype(tag)::type;
        const auto in = [](const T* p) { return reinterpret_cast<const Blas*>(p); };
        return gemm(handle, BlasOp(op), CUBLAS_OP_N, c.rows, c.cols, b.rows, in(alpha), in(a.data),
                    a.ld, in(b.data), b.ld, in(beta), reinterpret_cast<Blas*>(c.data), c.ld);
      });
}

// b := alpha op(a)^-1 b, a triangular.
template <class T>
cublasStatus_t Trsm(cublasHandle_t handle, cublasFillMode_t fill, Op op, cublasDiagType_t diagonal,
                    const T* alpha, const MatrixView<const T>& a, const MatrixView<T>& b) {
  return CallBlas<T>(
      cublasStrsm_64, cublasDtrsm_64, cublasCtrsm_64, cublasZtrsm_64, [&](auto trsm, auto tag) {
        using Blas = typename decltype(tag)::type;
        const auto in = [](const T* p) { return reinterpret_cast<const Blas*>(p); };
        return trsm(handle, CUBLAS_SIDE_LEFT, fill, BlasOp(op), diagonal, b.rows, b.cols, in(alpha),
                    in(a.data), a.ld, reinterpret_cast<Blas*>(b.data), b.ld);
      });
}

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

#endif  // CROUT_KERNELS_CUDA_OPS_BLAS_H_
