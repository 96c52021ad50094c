// Solves by cuBLAS triangular solves.
#ifndef CROUT_KERNELS_CUDA_TRSM_H_
#define CROUT_KERNELS_CUDA_TRSM_H_

#include "kernels/lu_algorithm.h"

namespace crout {

// op(A) X = B by one row permutation and two cublas?trsm, for factors with the unit diagonal in
// either triangle: A = P^T L U gives X = U^-1 L^-1 P B, and with op the transpose
// X = P^T L^-T U^-T B.
class CudaTrsm final : public TriangularSolver {
 public:
  std::string_view name() const override { return "trsm"; }
  bool Supports(UnitDiagonal) const override { return true; }
  double PredictSeconds(DType dtype, int64_t n, int64_t nrhs) const override;
  absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n, int64_t nrhs) const override;
  absl::Status Solve(ExecutionContext& context, const FactorView& factor, Op op, const AnyMatrix& b,
                     std::span<std::byte> workspace) const override;
};

}  // namespace crout

#endif  // CROUT_KERNELS_CUDA_TRSM_H_
