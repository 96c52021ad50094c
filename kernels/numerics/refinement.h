// SPDX-License-Identifier: Apache-2.0

// Iterative refinement of a solution.
#ifndef CROUT_KERNELS_NUMERICS_REFINEMENT_H_
#define CROUT_KERNELS_NUMERICS_REFINEMENT_H_

#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/numerics/residual_check.h"
#include "kernels/operators.h"
#include "kernels/stop_requested.h"

namespace crout {

// Limits of a refinement.
struct RefinementLimits {
  int max_steps = 0;
  double tolerance = 0;        // stop when the error is at most this
  bool componentwise = false;  // use the componentwise backward error instead of the normwise one
  // A step that reduces the error by less than `min_gain` is the last one, unless at most
  // `few_steps` steps with the same gain seem to remain.
  double min_gain = 2;
  double few_steps = 0;
};

// Result of a refinement.
struct Refinement {
  int corrections = 0;  // corrections contained in X
  // Applications of the inverse; one more than corrections if the last was undone.
  int applications = 0;
};

// Adds corrections op(M) (b - op(A) x) to X while they reduce its backward error. M, `inverse`, is
// an approximate inverse of A: from a factor of A in any precision, or of a nearby matrix. The more
// accurate M, the fewer steps; if M is too inaccurate, X remains unchanged.
//
// X and its residual are as measured by `check` on entry and on exit, and X never gets worse. X,
// the residual and `previous` (device memory for another X) have no gaps between columns (ld = n).
// Blocks; polls `stop` before each step.
absl::StatusOr<Refinement> Refine(ExecutionContext& context, ResidualCheck& check,
                                  InverseOperator& inverse, const RefinementLimits& limits,
                                  const AnyMatrix& previous, StopRequested stop);

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_REFINEMENT_H_
