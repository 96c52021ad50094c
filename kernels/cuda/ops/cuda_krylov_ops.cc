// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/ops/cuda_ops.h"

#include <complex>

#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/ops/matrix_kernels.h"

namespace crout::cuda {
namespace {

// Calls f(batched gemv, tag of its element type).
template <class F>
cublasStatus_t DispatchGemv(DType dtype, F&& f) {
  if (!IsComplex(dtype)) return f(cublasDgemvStridedBatched_64, TypeTag<double>{});
  return f(cublasZgemvStridedBatched_64, TypeTag<cuDoubleComplex>{});
}

template <class T>
T ScalarOf(double x) {
  if constexpr (std::is_same_v<T, cuDoubleComplex>) {
    return make_cuDoubleComplex(x, 0);
  } else {
    return x;
  }
}

// y(:, c) := alpha op(V) x(:, c) + beta y(:, c), where the columns of V are the vectors of space c.
// The vectors of one space are `spaces` columns apart, and consecutive spaces one column.
absl::Status Multiply(Context& context, cublasOperation_t op, double alpha, const KrylovBases& v,
                      const AnyMatrix& x, double beta, const AnyMatrix& y) {
  if (v.vectors.rows == 0 && beta == 1) return absl::OkStatus();
  CROUT_RETURN_IF_ERROR(context.core().MakeCurrent());
  const cublasStatus_t code = DispatchGemv(v.vectors.dtype, [&](auto gemv, auto tag) {
    using T = typename decltype(tag)::type;
    const T factor = ScalarOf<T>(alpha);
    const T addend = ScalarOf<T>(beta);
    const MatrixView<T> all = v.vectors.As<T>();
    return gemv(context.cublas(), op, all.rows, v.count(), &factor, all.data, v.spaces * all.ld,
                all.ld, x.As<T>().data, 1, x.ld, &addend, y.As<T>().data, 1, y.ld, v.spaces);
  });
  return context.core().Observe(CublasStatus(code, "cublasXgemvStridedBatched"));
}

}  // namespace

absl::Status CudaKrylovOps::Dots(const KrylovBases& v, const AnyMatrix& w, const AnyMatrix& h) {
  return Multiply(context_, CUBLAS_OP_C, 1, v, w, 0, h);
}

absl::Status CudaKrylovOps::AddCombination(double alpha, const KrylovBases& v, const AnyMatrix& h,
                                           const AnyMatrix& w) {
  return Multiply(context_, CUBLAS_OP_N, alpha, v, h, 1, w);
}

absl::Status CudaKrylovOps::ScaleColumns(const double* scales, const AnyMatrix& w) {
  return context_.Enqueue(
      "ScaleColumns", [&](cudaStream_t stream) { return LaunchScaleColumns(scales, w, stream); });
}

absl::Status CudaKrylovOps::ColumnMaxAbs(const AnyMatrix& w, double* most) {
  return context_.Enqueue("ColumnMaxAbs",
                          [&](cudaStream_t stream) { return LaunchColumnMaxAbs(w, most, stream); });
}

}  // namespace crout::cuda
