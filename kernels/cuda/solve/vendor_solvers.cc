// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/device/cuda_context.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/device/method_costs.h"
#include "kernels/cuda/ops/blas.h"
#include "kernels/cuda/solve/solvers.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {

double CudaGetrs::PredictSeconds(DType dtype, int64_t n, int64_t nrhs) const {
  return core_.Calibrated("getrs", dtype, n, PredictGetrsSeconds(dtype, n, nrhs));
}

absl::Status CudaGetrs::Solve(ExecutionContext& context, const FactorView& factor, Op op, double,
                              const AnyMatrix& b, std::span<std::byte>) const {
  if (b.rows == 0 || b.cols == 0) return absl::OkStatus();
  Context& cuda = Context::From(context);
  CROUT_RETURN_IF_ERROR(cuda.core().MakeCurrent());
  const AnyMatrix& lu = factor.lu;
  const cusolverStatus_t code = cusolverDnXgetrs(
      cuda.cusolver(), cuda.getrf_params(), BlasOp(op), lu.rows, b.cols, CudaTypeOf(lu.dtype),
      lu.data, lu.ld, factor.ipiv, CudaTypeOf(b.dtype), b.data, b.ld, cuda.info());
  return cuda.core().Observe(CusolverStatus(code, "cusolverDnXgetrs"));
}

double CudaTrsm::PredictSeconds(DType dtype, int64_t n, int64_t nrhs) const {
  return core_.Calibrated("trsm", dtype, n, PredictTrsmSeconds(dtype, n, nrhs));
}

absl::Status CudaTrsm::SolveTriangle(Context& context, const FactorView& factor, bool lower, Op op,
                                     double, const AnyMatrix& b) const {
  const bool unit = lower == (factor.unit_diagonal == UnitDiagonal::kL);
  return DispatchDevice(b.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T one = 1;
    return CublasStatus(
        Trsm<T>(context.cublas(), lower ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER, op,
                unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT, &one, factor.lu.As<const T>(),
                b.As<T>()),
        "cublasXtrsm");
  });
}

}  // namespace crout::cuda
