#include "kernels/cuda/solve/trsm.h"

#include "kernels/cuda/device/cuda_context.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/device/vendor_costs.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

template <class T>
cublasStatus_t Trsm(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t op,
                    cublasDiagType_t diagonal, const MatrixView<T>& a, const MatrixView<T>& b) {
  const T one = 1;
  if constexpr (std::is_same_v<T, float>) {
    return cublasStrsm_64(handle, CUBLAS_SIDE_LEFT, fill, op, diagonal, b.rows, b.cols, &one,
                          a.data, a.ld, b.data, b.ld);
  } else {
    return cublasDtrsm_64(handle, CUBLAS_SIDE_LEFT, fill, op, diagonal, b.rows, b.cols, &one,
                          a.data, a.ld, b.data, b.ld);
  }
}

}  // namespace

double CudaTrsm::PredictSeconds(DType dtype, int64_t n, int64_t nrhs) const {
  return core_.Calibrated("trsm", dtype, n, PredictTrsmSeconds(n, nrhs));
}

absl::Status CudaTrsm::SolveTriangle(Context& context, const FactorView& factor, bool lower, Op op,
                                     double, const AnyMatrix& b) const {
  const bool unit = lower == (factor.unit_diagonal == UnitDiagonal::kL);
  return DispatchReal(b.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return CublasStatus(
        Trsm(context.cublas(), lower ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER,
             op == Op::kNone ? CUBLAS_OP_N : CUBLAS_OP_T,
             unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT, factor.lu.As<T>(), b.As<T>()),
        "cublasXtrsm");
  });
}

}  // namespace crout::cuda
