// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/ops/cuda_ops.h"

#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/ops/convert.h"
#include "kernels/cuda/ops/matrix_kernels.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {

absl::Status CudaSparseOps::Inspect(const AnySparse& a, DType converted_to) {
  return context_.Enqueue("Inspect", [&](cudaStream_t stream) {
    return LaunchMatrixStats(a, converted_to, context_.scratch(), &context_.report().matrix,
                             stream);
  });
}

absl::Status CudaSparseOps::Densify(const AnySparse& a, const double* row, const double* col,
                                    const AnyMatrix& out) {
  return context_.Enqueue(
      "Densify", [&](cudaStream_t stream) { return LaunchDensify(a, row, col, out, stream); });
}

absl::Status CudaSparseOps::EquilibrationScales(const AnySparse& a, double* row, double* col) {
  return context_.Enqueue("EquilibrationScales", [&](cudaStream_t stream) {
    return LaunchEquilibrationScales(a, row, col, context_.scratch(), &context_.report().scale,
                                     stream);
  });
}

absl::Status CudaSparseOps::Residual(const AnySparse& a, Op op, double norm_op_a,
                                     const AnyMatrix& x, const AnyMatrix& b, const AnyMatrix& r) {
  return context_.Enqueue("Residual", [&](cudaStream_t stream) {
    const cudaError_t code = LaunchResidual(a, op, x, b, r, stream);
    if (code != cudaSuccess) return code;
    return LaunchBackwardError(norm_op_a, x, b, r, /*add_rhs=*/false, context_.scratch(),
                               &context_.report().residual, stream);
  });
}

absl::Status CudaSparseOps::WideRangeResidual(const AnySparse& a, Op op, const AnyMatrix& x,
                                              const AnyMatrix& b, const AnyMatrix& r) {
  return context_.Enqueue("WideRangeResidual", [&](cudaStream_t stream) {
    return LaunchWideRangeResidual(a, op, x, b, r, context_.scratch(), &context_.report().residual,
                                   stream);
  });
}

absl::Status CudaSparseOps::AbsProduct(const AnySparse& a, Op op, const AnyMatrix& x,
                                       const AnyMatrix& b, const MatrixView<double>& w) {
  return context_.Enqueue(
      "AbsProduct", [&](cudaStream_t stream) { return LaunchAbsProduct(a, op, x, b, w, stream); });
}

}  // namespace crout::cuda
