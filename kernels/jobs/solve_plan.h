// Which buffers a solve takes, decided before it runs.
#ifndef CROUT_KERNELS_JOBS_SOLVE_PLAN_H_
#define CROUT_KERNELS_JOBS_SOLVE_PLAN_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "kernels/factorization.h"

namespace crout {

// Sizes in bytes of the buffers of one Solve call; 0 for those it does without.
struct SolvePlan {
  size_t upload = 0;
  size_t rhs = 0;       // B in float64, column-major; 0 where the upload is that already
  size_t solution = 0;  // X in float64; 0 where it overwrites B
  size_t residual = 0;
  size_t scale = 0;     // |op(A)| |X| + |B|
  size_t previous = 0;  // X before a refinement step
  size_t solver = 0;    // of the FactorSolver
  size_t bound = 0;     // of BoundForwardError
  JobBytes bytes;

  bool upload_is_rhs = false;
  bool needs_residual = false;
};

// INVALID_ARGUMENT for a size that overflows or options without a solver.
absl::StatusOr<SolvePlan> PlanSolve(const SolveOptions& options, const FactorSummary& factor,
                                    const PackedMatrix& rhs);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_SOLVE_PLAN_H_
