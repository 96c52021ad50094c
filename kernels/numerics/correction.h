// Corrects a solution with an inverse that is only near: refinement first, then GMRES.
#ifndef CROUT_KERNELS_NUMERICS_CORRECTION_H_
#define CROUT_KERNELS_NUMERICS_CORRECTION_H_

#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/inverse_operator.h"
#include "kernels/numerics/gmres.h"
#include "kernels/numerics/residual_check.h"
#include "kernels/stop_requested.h"

namespace crout {

// Makes X better until its normwise backward error is at most limits.enough, or that does not help,
// or more than limits.most_left iterations of GMRES seem to be left after limits.least_iterations:
// by Refine() while a step gains what several iterations of GMRES would, or so few steps seem to be
// left that they cost less than a cycle of GMRES, by Gmres() from there, and by refinement alone
// near the end of float64's range. `check`, `inverse`, `memory` and `stop` as Gmres() has them;
// limits.max_iterations and least_iterations count the steps of both. Returns how often the inverse
// was applied. Blocks.
absl::StatusOr<int> Correct(ExecutionContext& context, ResidualCheck& check,
                            InverseOperator& inverse, const GmresLimits& limits,
                            const GmresMemory& memory, StopRequested stop);

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_CORRECTION_H_
