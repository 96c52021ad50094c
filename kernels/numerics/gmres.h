// GMRES: where an inverse is too far off for refinement, the best correction of a Krylov space.
#ifndef CROUT_KERNELS_NUMERICS_GMRES_H_
#define CROUT_KERNELS_NUMERICS_GMRES_H_

#include <cstddef>
#include <cstdint>
#include <limits>

#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/inverse_operator.h"
#include "kernels/krylov_ops.h"
#include "kernels/numerics/residual_check.h"
#include "kernels/stop_requested.h"

namespace crout {

struct GmresLimits {
  int max_iterations = 0;  // applications of the inverse to the spaces' vectors, in all cycles
  int restart = 30;        // most vectors of a cycle; at least 1
  double enough = 0;       // normwise backward error that ends it
  // Iterations that are worth no more than that: where more seem to be left it is given up, after
  // so many at least.
  double most_left = std::numeric_limits<double>::infinity();
  int least_iterations = 0;
  // What all of it may cost: 1 each iteration, and beside those what the begin of each cycle does.
  double most_cost = std::numeric_limits<double>::infinity();
  double cycle_cost = 0;
  // Of Correct(): what an application of the inverse has lowered a residual by; 0: not known.
  double known_gain = 0;
};

// Iterations that are left, at least, as far as the first ones tell: to lower an error from `error`
// to `enough`, where each lowers it by the factor `gain`, above 1, or some more. 0 at the goal.
double IterationsLeft(double error, double enough, double gain);

// The most vectors of a cycle: as many as take half of the matrix's memory, at most 30, beyond
// which orthogonalization costs as much as a product; with many right-hand sides four all the same.
// `nrhs`: at least 1.
int RestartFor(int64_t n, int64_t nrhs);

// Device memory for nrhs right-hand sides at once, laid out in one block.
class GmresMemory {
 public:
  // INVALID_ARGUMENT where the size overflows, or nrhs or restart is below 1.
  static absl::StatusOr<size_t> Bytes(int64_t n, int64_t nrhs, DType vector_type, int restart);

  // `block`: so many bytes, aligned to 256.
  GmresMemory(std::byte* block, int64_t n, int64_t nrhs, DType vector_type, int restart);

  KrylovBases bases;         // restart + 1 vectors each
  KrylovBases images;        // restart: what the inverse makes of all but the last
  AnyMatrix previous;        // n x nrhs: X before the cycle, to go back to
  AnyMatrix coefficients;    // (restart + 1) x nrhs, twice: of the two orthogonalizations
  AnyMatrix again;           // the second, right behind
  AnyMatrix squares;         // 1 x nrhs, right behind: squares of norms
  double* scales = nullptr;  // nrhs, each; one behind the other
  double* solution_max = nullptr;
  double* rhs_max = nullptr;
  double* residual_max = nullptr;
};

struct GmresResult {
  int iterations = 0;
  int cycles = 0;  // begun
  bool given_up = false;
};

// Flexible GMRES (Saad 1993), restarted, with M, `inverse`, as preconditioner on the right, for
// all right-hand sides of op(A) X = B together: each has a Krylov space of its own and ends by
// itself when its backward error should be enough; the cycle ends with the last. M may be of a
// matrix some way off, or in lower precision, where refinement diverges: the fewer clusters the
// eigenvalues of A M have, the fewer iterations. Orthogonalizes by classical Gram-Schmidt, twice.
//
// The space is built from v -> v - op(A) M v, the residual of M v for v as right-hand side: an
// Operand needs nothing else, and where M is close its roundings stay small beside v.
//
// As Refine: on entry X and its residual are as `check` has measured them, on exit too; X is never
// worse than it was; X, the residual and `memory`'s are without gaps between columns. Ends where a
// cycle no longer halves the error, where the next iteration, or the cycle that it is to begin,
// would cost more than limits say, where more than limits.most_left iterations seem to be left, X
// then as the last cycle left it, and without having begun where numbers near the end of the
// range made `check` turn to the wider one. The context has KrylovOps. Blocks; `stop` is asked
// before each iteration.
absl::StatusOr<GmresResult> Gmres(ExecutionContext& context, ResidualCheck& check,
                                  InverseOperator& inverse, const GmresLimits& limits,
                                  const GmresMemory& memory, StopRequested stop);

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_GMRES_H_
