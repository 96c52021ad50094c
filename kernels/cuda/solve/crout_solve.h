// SPDX-License-Identifier: Apache-2.0

// Crout's own solver, for factors that are prepared when they enter the cache.
#ifndef CROUT_KERNELS_CUDA_SOLVE_CROUT_SOLVE_H_
#define CROUT_KERNELS_CUDA_SOLVE_CROUT_SOLVE_H_

#include "kernels/cuda/device/cuda_device_core.h"
#include "kernels/lu_algorithm.h"

namespace crout::cuda {

// `crout_solve`: op(A) X = B as a sequence of matrix products, for factors with the unit diagonal
// in either triangle. Preparation inverts the diagonal blocks T of L and U. Each block of unknowns
// then takes three products:
//   x := T^-1 b,  r := b - T x,  x := x + T^-1 r.
// The last two correct the result, because an inverse alone is not backward stable (N. J. Higham,
// Accuracy and Stability of Numerical Algorithms, 2nd ed., chapter 14). They are skipped if all
// blocks are well-conditioned, or if the possible error of an inverse alone is within the
// tolerance.
//
// The parts between the blocks are subtracted by halving the matrix recursively, so that the
// products are square. The solver counts as reliable while the blocks' condition numbers leave the
// correction effective. Beyond the guaranteed range, it counts as reliable only if the error of
// each solve is measured (docs/decisions/0010).
class CroutSolve final : public TriangularSolver {
 public:
  explicit CroutSolve(const DeviceCore& core) : core_(core) {}

  const MethodTraits& traits() const override {
    static constexpr MethodTraits kTraits = {
        .name = "crout_solve",
        .description = "matrix products with inverted diagonal blocks and one correction",
        .types = kAllTypes,
        .needs_preparation = true,
        .is_timed = true};
    return kTraits;
  }
  double PredictSeconds(DType dtype, int64_t n, int64_t nrhs) const override;
  absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n, int64_t nrhs) const override;
  absl::Status Solve(ExecutionContext& context, const FactorView& factor, Op op, double tolerance,
                     const AnyMatrix& b, std::span<std::byte> workspace) const override;

  // The row permutation and the inverses: n int64 (one more if n is odd), and n x nb elements of
  // the factor's type.
  absl::StatusOr<size_t> PreparedBytes(DType dtype, int64_t n) const override;
  absl::Status Prepare(ExecutionContext& context, const FactorView& factor,
                       std::span<std::byte> prepared) const override;
  Reliability AssessPreparation(const PreparationStats& preparation, DType dtype, int64_t n,
                                Op op) const override;

 private:
  const DeviceCore& core_;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_SOLVE_CROUT_SOLVE_H_
