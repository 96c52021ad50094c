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

// What a correction took.
struct Correction {
  int iterations = 0;  // applications of the inverse, those that were taken back included
  // In steps of refinement, which an iteration of GMRES and the begin of a cycle cost more than: by
  // the order of the system and the kind of the device, not by the clock.
  double cost = 0;
};

// Makes X better until its normwise backward error is at most limits.enough, or that does not help,
// or more than limits.most_left seems to be left after limits.least_iterations: by Refine() while a
// step gains what several iterations of GMRES would, or the few steps that seem to be left cost
// less than GMRES, by Gmres() from there, and by refinement alone near the end of float64's range.
// `check`, `inverse`, `memory` and `stop` as Gmres() has them; limits.max_iterations and
// least_iterations count the steps of both, limits.most_left and most_cost are costs, and the
// latter is not exceeded; limits.cycle_cost is not read.
// Nothing is done where limits.known_gain tells that more than it is left. Blocks.
absl::StatusOr<Correction> Correct(ExecutionContext& context, ResidualCheck& check,
                                   InverseOperator& inverse, const GmresLimits& limits,
                                   const GmresMemory& memory, StopRequested stop);

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_CORRECTION_H_
