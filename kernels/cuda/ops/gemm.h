// cuBLAS's matrix product for the four types.
#ifndef CROUT_KERNELS_CUDA_OPS_GEMM_H_
#define CROUT_KERNELS_CUDA_OPS_GEMM_H_

#include <cublas_v2.h>

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/device/complex.h"
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

// c := alpha op(a) b + beta c on the handle's stream, by cublas[SDCZ]gemm; T as kernels have it
// (DeviceType). The scalars lie where the handle's pointer mode says. Shapes fit.
template <class T>
cublasStatus_t Gemm(cublasHandle_t handle, Op op, const T* alpha, const MatrixView<const T>& a,
                    const MatrixView<const T>& b, const T* beta, const MatrixView<T>& c) {
  const auto call = [&](auto gemm, auto type) {
    using Blas = decltype(type);  // cuBLAS's name of T
    const auto in = [](const T* p) { return reinterpret_cast<const Blas*>(p); };
    return gemm(handle, BlasOp(op), CUBLAS_OP_N, c.rows, c.cols, b.rows, in(alpha), in(a.data),
                a.ld, in(b.data), b.ld, in(beta), reinterpret_cast<Blas*>(c.data), c.ld);
  };
  if constexpr (std::is_same_v<T, float>) {
    return call(cublasSgemm_64, float{});
  } else if constexpr (std::is_same_v<T, double>) {
    return call(cublasDgemm_64, double{});
  } else if constexpr (std::is_same_v<T, Complex<float>>) {
    return call(cublasCgemm_64, cuComplex{});
  } else {
    static_assert(std::is_same_v<T, Complex<double>>);
    return call(cublasZgemm_64, cuDoubleComplex{});
  }
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_GEMM_H_
