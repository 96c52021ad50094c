// Which of the solvers that a solve may use is the one that runs.
#ifndef CROUT_KERNELS_JOBS_SOLVER_CHOICE_H_
#define CROUT_KERNELS_JOBS_SOLVER_CHOICE_H_

#include "absl/status/statusor.h"
#include "kernels/factorization.h"
#include "kernels/jobs/solve.h"

namespace crout {

struct SolverChoice {
  const TriangularSolver* solver = nullptr;
  // Solves again where the measured backward error is above AcceptedBackwardError; null where
  // `solver` needs no such check, or there is no other.
  const TriangularSolver* in_reserve = nullptr;
  SolverFallback fallback = SolverFallback::kNone;
};

// For a factor that is not singular. `measured`: the backward error of the answer will be known. A
// solver that its bound alone does not vouch for is used only then. FAILED_PRECONDITION if the
// solver needs a factor that was prepared, or none is accurate enough.
absl::StatusOr<SolverChoice> ChooseSolver(const FactorSummary& factor, const SolveOptions& options,
                                          bool measured);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_SOLVER_CHOICE_H_
