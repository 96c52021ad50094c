// SPDX-License-Identifier: Apache-2.0

// The base of solvers that process the two triangles of a factor one after the other.
#ifndef CROUT_KERNELS_CUDA_SOLVE_PERMUTED_SOLVER_H_
#define CROUT_KERNELS_CUDA_SOLVE_PERMUTED_SOLVER_H_

#include "kernels/cuda/device/cuda_context.h"
#include "kernels/lu_algorithm.h"

namespace crout::cuda {

// op(A) X = B by one row permutation and two triangles, for factors with the unit diagonal in
// either: A = P^T L U gives X = U^-1 L^-1 P B, and with the transpose X = P^T L^-T U^-T B.
class PermutedSolver : public TriangularSolver {
 public:
  absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n, int64_t nrhs) const final;
  absl::Status Solve(ExecutionContext& context, const FactorView& factor, Op op, double tolerance,
                     const AnyMatrix& b, std::span<std::byte> workspace) const final;

 protected:
  // Enqueues the solve op(T) X = b with T = L (`lower`) or U; X overwrites b.
  virtual absl::Status SolveTriangle(Context& context, const FactorView& factor, bool lower, Op op,
                                     double tolerance, const AnyMatrix& b) const = 0;

 private:
  absl::Status Enqueue(Context& context, const FactorView& factor, Op op, double tolerance,
                       const AnyMatrix& b, std::span<std::byte> workspace) const;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_SOLVE_PERMUTED_SOLVER_H_
