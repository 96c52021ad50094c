// SPDX-License-Identifier: Apache-2.0

#include "kernels/numerics/refinement.h"

#include "kernels/numerics/gmres.h"
#include "kernels/stop_requested.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

absl::Status Copy(ExecutionContext& context, const AnyMatrix& from, const AnyMatrix& to) {
  return context.ops().CopyOnDevice(from.data, to.data, from.rows * from.cols * SizeOf(from.dtype));
}

// Adds the correction for the current residual and saves the previous X in `previous`.
absl::Status Correct(ExecutionContext& context, ResidualCheck& check, InverseOperator& inverse,
                     const AnyMatrix& previous) {
  const CheckedSystem& system = check.system();
  const AnyMatrix& correction = system.r;  // solved in place
  CROUT_RETURN_IF_ERROR(inverse.Apply(system.op, correction, correction));
  CROUT_RETURN_IF_ERROR(Copy(context, system.x, previous));
  CROUT_RETURN_IF_ERROR(context.ops().Add(correction, system.x));
  return check.Measure();
}

}  // namespace

absl::StatusOr<Refinement> Refine(ExecutionContext& context, ResidualCheck& check,
                                  InverseOperator& inverse, const RefinementLimits& limits,
                                  const AnyMatrix& previous, StopRequested stop) {
  const auto error = [&] {
    return limits.componentwise ? check.errors().componentwise : check.errors().normwise;
  };
  Refinement done;
  while (done.applications < limits.max_steps && error() > limits.tolerance) {
    CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
    const double before = error();
    CROUT_RETURN_IF_ERROR(Correct(context, check, inverse, previous));
    ++done.applications;
    if (!(error() < before)) {
      CROUT_RETURN_IF_ERROR(Copy(context, previous, check.system().x));
      CROUT_RETURN_IF_ERROR(check.Measure());
      break;
    }
    ++done.corrections;
    const double gain = before / error();
    if (gain < limits.min_gain &&
        IterationsLeft(error(), limits.tolerance, gain) > limits.few_steps) {
      break;
    }
  }
  return done;
}

}  // namespace crout
