// SPDX-License-Identifier: Apache-2.0

// Chooses between the solvers that a solve may use.
#ifndef CROUT_KERNELS_JOBS_SOLVER_CHOICE_H_
#define CROUT_KERNELS_JOBS_SOLVER_CHOICE_H_

#include "absl/status/statusor.h"
#include "kernels/factorization.h"
#include "kernels/jobs/solve.h"

namespace crout {

struct SolverChoice {
  const TriangularSolver* solver = nullptr;
  // Solves again if the measured backward error exceeds AcceptedBackwardError. Null if `solver`
  // needs no such check, or there is no other solver.
  const TriangularSolver* fallback_solver = nullptr;
  SolverFallback fallback = SolverFallback::kNone;
};

// Chooses a solver for a nonsingular factor. `measured`: the backward error of the answer will be
// measured. A solver whose error bound does not guarantee its accuracy is allowed only then.
// FAILED_PRECONDITION if the solver requires preparation, or no solver is accurate enough.
absl::StatusOr<SolverChoice> ChooseSolver(const FactorSummary& factor, const SolveOptions& options,
                                          bool measured);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_SOLVER_CHOICE_H_
