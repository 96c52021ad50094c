// SPDX-License-Identifier: Apache-2.0

// Triangular solvers of the CUDA device, for all four types.
#ifndef CROUT_KERNELS_CUDA_SOLVE_SOLVERS_H_
#define CROUT_KERNELS_CUDA_SOLVE_SOLVERS_H_

#include "kernels/cuda/device/cuda_context.h"
#include "kernels/cuda/device/cuda_device_core.h"
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

// op(A) X = B by cusolverDnXgetrs, for factors with the unit diagonal in L. Needs no workspace.
class CudaGetrs final : public TriangularSolver {
 public:
  explicit CudaGetrs(const DeviceCore& core) : core_(core) {}

  const MethodTraits& traits() const override {
    static constexpr MethodTraits kTraits = {.name = "getrs",
                                             .description = "cuSOLVER cusolverDnXgetrs",
                                             .types = kAllTypes,
                                             .solves_with = {UnitDiagonal::kL},
                                             .is_timed = true};
    return kTraits;
  }
  double PredictSeconds(DType dtype, int64_t n, int64_t nrhs) const override;
  absl::StatusOr<size_t> WorkspaceBytes(DType, int64_t, int64_t) const override { return 0; }
  absl::Status Solve(ExecutionContext& context, const FactorView& factor, Op op, double tolerance,
                     const AnyMatrix& b, std::span<std::byte> workspace) const override;

 private:
  const DeviceCore& core_;
};

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

#endif  // CROUT_KERNELS_CUDA_SOLVE_SOLVERS_H_
