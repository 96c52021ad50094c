// SPDX-License-Identifier: Apache-2.0

// GMRES, for inverses too inaccurate for refinement: the optimal correction in a Krylov space.
#ifndef CROUT_KERNELS_NUMERICS_GMRES_H_
#define CROUT_KERNELS_NUMERICS_GMRES_H_

#include <cstddef>
#include <cstdint>
#include <limits>

#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/krylov_ops.h"
#include "kernels/numerics/residual_check.h"
#include "kernels/operators.h"
#include "kernels/stop_requested.h"

namespace crout {

struct GmresLimits {
  int max_iterations = 0;  // applications of the inverse to basis vectors, over all cycles
  int restart = 30;        // largest number of vectors in a cycle; at least 1
  double tolerance = 0;    // normwise backward error that ends the iteration
  // Gives up if more than `max_remaining` iterations seem to remain, but not before
  // `min_iterations`.
  double max_remaining = std::numeric_limits<double>::infinity();
  int min_iterations = 0;
  // Limit of the total cost: each iteration costs 1, and the start of each cycle costs
  // `cycle_cost`.
  double max_cost = std::numeric_limits<double>::infinity();
  double cycle_cost = 0;
  // For Correct(): factor by which an application of the inverse reduced a residual before; 0:
  // unknown.
  double known_gain = 0;
};

// Estimates the iterations needed to reduce an error from `error` to `enough` if each gains a
// factor of at least `gain` (> 1). 0 if the goal is reached; Inf for a gain of at most 1.
double IterationsLeft(double error, double enough, double gain);

// Returns the largest number of vectors in a cycle: the number that fills half of the matrix's
// memory, but at least 4 and at most 30. Beyond 30, orthogonalization costs as much as a product.
// `nrhs` is at least 1.
int RestartFor(int64_t n, int64_t nrhs);

// Device memory for nrhs right-hand sides, in one block.
class GmresMemory {
 public:
  // INVALID_ARGUMENT if the size overflows, or nrhs or restart is below 1.
  static absl::StatusOr<size_t> Bytes(int64_t n, int64_t nrhs, DType vector_type, int restart);

  // `block` has Bytes() bytes, aligned to 256.
  GmresMemory(std::byte* block, int64_t n, int64_t nrhs, DType vector_type, int restart);

  KrylovBases bases;  // restart + 1 vectors per space
  // `restart` vectors per space: the inverse applied to all basis vectors but the last.
  KrylovBases images;
  AnyMatrix previous;        // n x nrhs: X before the cycle, to undo it
  AnyMatrix coefficients;    // (restart + 1) x nrhs: first orthogonalization
  AnyMatrix again;           // second orthogonalization, contiguous with the first
  AnyMatrix squares;         // 1 x nrhs, contiguous with `again`: squared norms
  double* scales = nullptr;  // nrhs elements, as the next three; all contiguous
  double* solution_max = nullptr;
  double* rhs_max = nullptr;
  double* residual_max = nullptr;
};

struct GmresResult {
  int iterations = 0;
  int cycles = 0;  // started
  bool given_up = false;
};

// Restarted flexible GMRES (Saad 1993) for all right-hand sides of op(A) X = B at once, with M,
// `inverse`, as right preconditioner. Each right-hand side has its own Krylov space and stops when
// its backward error is expected to suffice. A cycle ends when all right-hand sides have stopped.
// Orthogonalizes twice by classical Gram-Schmidt.
//
// GMRES converges where refinement diverges: M may be the inverse of a different matrix, or of low
// precision. The fewer clusters the eigenvalues of A M form, the fewer iterations are needed.
//
// The space is built with v -> v - op(A) M v, the residual of M v for the right-hand side v. This
// requires only a residual from Operand, and if M is accurate its roundings are small relative to
// v.
//
// X and its residual are as measured by `check` on entry and on exit, as in Refine, and X never
// gets worse. X, the residual and `memory`'s matrices have no gaps between columns.
//
// Ends when
// - a cycle no longer halves the error,
// - the next iteration, or the cycle that it starts, would exceed the cost limit,
// - more than limits.max_remaining iterations seem to remain; X is then as the last cycle left it,
// or
// - `check` switched to the wide range because of numbers near the end of float64's range; no
//   further cycle starts then.
//
// The context must have KrylovOps. Blocks; polls `stop` before each iteration.
absl::StatusOr<GmresResult> Gmres(ExecutionContext& context, ResidualCheck& check,
                                  InverseOperator& inverse, const GmresLimits& limits,
                                  const GmresMemory& memory, StopRequested stop);

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_GMRES_H_
