// SPDX-License-Identifier: Apache-2.0

// Solves by cuBLAS's triangular solves.
#ifndef CROUT_KERNELS_CUDA_SOLVE_TRSM_H_
#define CROUT_KERNELS_CUDA_SOLVE_TRSM_H_

#include "kernels/cuda/solve/permuted_solver.h"

namespace crout::cuda {

// `trsm`: a row permutation, and one call of cublas?trsm for each of the two triangles.
class CudaTrsm final : public PermutedSolver {
 public:
  explicit CudaTrsm(const DeviceCore& core) : core_(core) {}

  const MethodTraits& traits() const override {
    static constexpr MethodTraits kTraits = {
        .name = "trsm",
        .description = "one row permutation and two cublas?trsm",
        .types = kAllTypes,
        .is_timed = true};
    return kTraits;
  }
  double PredictSeconds(DType dtype, int64_t n, int64_t nrhs) const override;

 private:
  absl::Status SolveTriangle(Context& context, const FactorView& factor, bool lower, Op op,
                             double tolerance, const AnyMatrix& b) const override;

  const DeviceCore& core_;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_SOLVE_TRSM_H_
