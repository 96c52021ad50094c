// SPDX-License-Identifier: Apache-2.0

// Solves by sweeps over sections of a triangle.
#ifndef CROUT_KERNELS_CUDA_SOLVE_IS_H_
#define CROUT_KERNELS_CUDA_SOLVE_IS_H_

#include "kernels/cuda/solve/permuted_solver.h"

namespace crout::cuda {

// `is`: op(A) X = B by the iterative triangular solver of L. M. Cejka, Parallel Computation of LU
// Decomposition on GPUs (CTU in Prague, 2023), for factors with the unit diagonal in either
// triangle. For a triangle T with diagonal d, section by section,
//   x_i = (b_i - sum_{k before i} t_ik x_k) / d_i
// is iterated for all i at once. It starts from x = b / d and ends when no unknown changes by more
// than the tolerance, after at most as many sweeps as the section has rows. Products with finished
// sections are subtracted once. Non-finite values never count as converged; substitution produces
// them too.
class CudaIs final : public PermutedSolver {
 public:
  explicit CudaIs(const DeviceCore& core) : core_(core) {}

  const MethodTraits& traits() const override {
    static constexpr MethodTraits kTraits = {
        .name = "is",
        .description = "iterated triangular sections (Cejka 2023)",
        .types = kAllTypes,
        .iterative = true,
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

#endif  // CROUT_KERNELS_CUDA_SOLVE_IS_H_
