// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/solve/trsm.h"

#include "kernels/cuda/device/cuda_context.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/device/vendor_costs.h"
#include "kernels/cuda/ops/blas.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
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
