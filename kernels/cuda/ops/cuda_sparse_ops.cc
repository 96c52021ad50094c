#include "kernels/cuda/ops/cuda_sparse_ops.h"

#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/ops/convert.h"
#include "kernels/cuda/ops/equilibration.h"
#include "kernels/cuda/ops/matrix_stats.h"
#include "kernels/cuda/ops/residual.h"
#include "kernels/cuda/ops/wide_range_residual.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {

absl::Status CudaSparseOps::Inspect(const AnySparse& a, DType converted_to) {
  CROUT_RETURN_IF_ERROR(context_.core().MakeCurrent());
  return context_.core().Observe(
      CudaStatus(LaunchMatrixStats(a, converted_to, context_.scratch(), &context_.report().matrix,
                                   context_.stream()),
                 "Inspect"));
}

absl::Status CudaSparseOps::Densify(const AnySparse& a, const double* row, const double* col,
                                    const AnyMatrix& out) {
  CROUT_RETURN_IF_ERROR(context_.core().MakeCurrent());
  return context_.core().Observe(
      CudaStatus(LaunchDensify(a, row, col, out, context_.stream()), "Densify"));
}

absl::Status CudaSparseOps::EquilibrationScales(const AnySparse& a, double* row, double* col) {
  CROUT_RETURN_IF_ERROR(context_.core().MakeCurrent());
  return context_.core().Observe(
      CudaStatus(LaunchEquilibrationScales(a, row, col, context_.scratch(),
                                           &context_.report().scale, context_.stream()),
                 "EquilibrationScales"));
}

absl::Status CudaSparseOps::Residual(const AnySparse& a, Op op, double norm_op_a,
                                     const AnyMatrix& x, const AnyMatrix& b, const AnyMatrix& r) {
  CROUT_RETURN_IF_ERROR(context_.core().MakeCurrent());
  CROUT_RETURN_IF_ERROR(context_.core().Observe(
      CudaStatus(LaunchResidual(a, op, x, b, r, context_.stream()), "Residual")));
  return context_.core().Observe(
      CudaStatus(LaunchBackwardError(norm_op_a, x, b, r, /*add_rhs=*/false, context_.scratch(),
                                     &context_.report().residual, context_.stream()),
                 "Residual"));
}

absl::Status CudaSparseOps::WideRangeResidual(const AnySparse& a, Op op, const AnyMatrix& x,
                                              const AnyMatrix& b, const AnyMatrix& r) {
  CROUT_RETURN_IF_ERROR(context_.core().MakeCurrent());
  return context_.core().Observe(
      CudaStatus(LaunchWideRangeResidual(a, op, x, b, r, context_.scratch(),
                                         &context_.report().residual, context_.stream()),
                 "WideRangeResidual"));
}

absl::Status CudaSparseOps::AbsProduct(const AnySparse& a, Op op, const AnyMatrix& x,
                                       const AnyMatrix& b, const MatrixView<double>& w) {
  CROUT_RETURN_IF_ERROR(context_.core().MakeCurrent());
  return context_.core().Observe(
      CudaStatus(LaunchAbsProduct(a, op, x, b, w, context_.stream()), "AbsProduct"));
}

}  // namespace crout::cuda
