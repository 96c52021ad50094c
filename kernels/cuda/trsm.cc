#include "kernels/cuda/trsm.h"

#include "absl/strings/str_cat.h"
#include "kernels/cuda/cuda_context.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/permute_rhs.h"
#include "kernels/cuda/vendor_costs.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

enum class Triangle { kL, kU };

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

absl::Status SolveTriangle(CudaContext& context, const FactorView& factor, Triangle triangle, Op op,
                           const AnyMatrix& b) {
  const bool lower = triangle == Triangle::kL;
  const bool unit = lower == (factor.unit_diagonal == UnitDiagonal::kL);
  return DispatchDType(b.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return CublasStatus(
        Trsm(context.cublas(), lower ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER,
             op == Op::kNone ? CUBLAS_OP_N : CUBLAS_OP_T,
             unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT, factor.lu.As<T>(), b.As<T>()),
        "cublasXtrsm");
  });
}

absl::Status Enqueue(CudaContext& context, const FactorView& factor, Op op, const AnyMatrix& b,
                     std::span<std::byte> workspace) {
  if (op == Op::kNone) {
    CROUT_RETURN_IF_ERROR(PermuteRhs(context, factor, false, b, workspace));
    CROUT_RETURN_IF_ERROR(SolveTriangle(context, factor, Triangle::kL, op, b));
    return SolveTriangle(context, factor, Triangle::kU, op, b);
  }
  CROUT_RETURN_IF_ERROR(SolveTriangle(context, factor, Triangle::kU, op, b));
  CROUT_RETURN_IF_ERROR(SolveTriangle(context, factor, Triangle::kL, op, b));
  return PermuteRhs(context, factor, true, b, workspace);
}

}  // namespace

double CudaTrsm::PredictSeconds(DType, int64_t n, int64_t nrhs) const {
  return PredictTrsmSeconds(n, nrhs);
}

absl::StatusOr<size_t> CudaTrsm::WorkspaceBytes(DType dtype, int64_t n, int64_t nrhs) const {
  return PermuteRhsBytes(dtype, n, nrhs);
}

absl::Status CudaTrsm::Solve(ExecutionContext& context, const FactorView& factor, Op op,
                             const AnyMatrix& b, std::span<std::byte> workspace) const {
  if (b.rows == 0 || b.cols == 0) return absl::OkStatus();
  CudaContext& cuda = CudaContext::From(context);
  CROUT_ASSIGN_OR_RETURN(const size_t needed, WorkspaceBytes(b.dtype, b.rows, b.cols));
  if (workspace.size() < needed) {
    return absl::InternalError(
        absl::StrCat("trsm needs ", needed, " bytes of workspace, got ", workspace.size()));
  }
  CROUT_RETURN_IF_ERROR(cuda.core().MakeCurrent());
  return cuda.core().Observe(Enqueue(cuda, factor, op, b, workspace));
}

}  // namespace crout
