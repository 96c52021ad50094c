// Iterative refinement: a solution becomes better by what the inverse makes of its residual.
#ifndef CROUT_KERNELS_NUMERICS_REFINEMENT_H_
#define CROUT_KERNELS_NUMERICS_REFINEMENT_H_

#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/inverse_operator.h"
#include "kernels/numerics/residual_check.h"
#include "kernels/stop_requested.h"

namespace crout {

// When refinement ends.
struct RefinementLimits {
  int max_steps = 0;
  double enough = 0;           // no step is taken from an error that is not above this
  bool componentwise = false;  // which of the two backward errors counts
  // A step that lowers the error by less than this factor is the last, unless no more than so many
  // seem to be left, each of which gains as much.
  double least_gain = 2;
  double few_steps = 0;
};

// What refinement did.
struct Refinement {
  int corrections = 0;   // that X holds
  int applications = 0;  // of the inverse: one more where the last step was taken back
};

// Adds corrections op(M) (b - op(A) x) to X as long as they lower its backward error. M, `inverse`,
// is near A^-1: of a factor of A, in whatever precision, or of a matrix close to it; the nearer,
// the fewer steps. With one that is far off X stays as it is.
//
// On entry X and its residual are as `check` has measured them, on exit too; X is never worse than
// it was. X, the residual and `previous`, device memory for another X, are without gaps between
// columns (ld = n). Blocks; `stop` is asked before each step.
absl::StatusOr<Refinement> Refine(ExecutionContext& context, ResidualCheck& check,
                                  InverseOperator& inverse, const RefinementLimits& limits,
                                  const AnyMatrix& previous, StopRequested stop);

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_REFINEMENT_H_
