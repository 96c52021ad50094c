// Crout's own solver, for factors that were prepared when they entered the cache.
#ifndef CROUT_KERNELS_CUDA_SOLVE_CROUT_SOLVE_H_
#define CROUT_KERNELS_CUDA_SOLVE_CROUT_SOLVE_H_

#include "kernels/cuda/device/cuda_device_core.h"
#include "kernels/lu_algorithm.h"

namespace crout::cuda {

// "crout_solve": op(A) X = B as a sequence of matrix products, for factors with the unit diagonal
// in either triangle. Preparation inverts the diagonal blocks T of L and U. Then each block of
// unknowns takes three products,
//   x := T^-1 b,  r := b - T x,  x := x + T^-1 r,
// the last two, unless all blocks are well-conditioned, because an inverse alone is not backward
// stable (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., chapter 14); they
// are left out as well where what an inverse alone may be wrong by is within the tolerance. What
// lies between the blocks is subtracted in halves, quarters and so on of the matrix, so that the
// products are square. Trusted while the blocks' condition numbers leave the correction its effect,
// and beyond what they guarantee only where each solve is measured: docs/decisions/0010.
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

  // The row permutation and the inverses: n int64, one more if n is odd, and n x nb of the factor's
  // type.
  absl::StatusOr<size_t> PreparedBytes(DType dtype, int64_t n) const override;
  absl::Status Prepare(ExecutionContext& context, const FactorView& factor,
                       std::span<std::byte> prepared) const override;
  Trust Trusts(const PreparationStats& preparation, DType dtype, int64_t n, Op op) const override;

 private:
  const DeviceCore& core_;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_SOLVE_CROUT_SOLVE_H_
