// SPDX-License-Identifier: Apache-2.0

// Corrects a solution with an approximate inverse: refinement first, then GMRES.
#ifndef CROUT_KERNELS_NUMERICS_CORRECTION_H_
#define CROUT_KERNELS_NUMERICS_CORRECTION_H_

#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/numerics/gmres.h"
#include "kernels/numerics/residual_check.h"
#include "kernels/operators.h"
#include "kernels/stop_requested.h"

namespace crout {

// Effort of a correction.
struct Correction {
  int iterations = 0;  // applications of the inverse, including corrections that were undone
  // In refinement steps. A GMRES iteration and the start of a cycle cost more than a step; the cost
  // model depends on the order of the system and the kind of device, not on timings.
  double cost = 0;
};

// Improves X until its normwise backward error is at most limits.tolerance or further work does not
// help. Gives up when the estimated remaining cost exceeds limits.max_remaining, after at least
// limits.min_iterations.
//
// Uses Refine() while a step gains as much as several GMRES iterations, or while the few remaining
// steps seem cheaper than GMRES. Then uses Gmres(). Near the end of float64's range, uses
// refinement alone.
//
// `check`, `inverse`, `memory` and `stop` are as in Gmres(). limits.max_iterations and
// min_iterations count the steps of both methods. limits.max_remaining and max_cost are costs;
// max_cost is never exceeded. limits.cycle_cost is ignored. Does nothing if limits.known_gain
// predicts a remaining cost above max_remaining. Blocks.
absl::StatusOr<Correction> Correct(ExecutionContext& context, ResidualCheck& check,
                                   InverseOperator& inverse, const GmresLimits& limits,
                                   const GmresMemory& memory, StopRequested stop);

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_CORRECTION_H_
